// Convolution + bias + optional ReLU + optional 2x2 max-pool for small networks on a CPU core.
//
// Tensors are [channel, row, column, image]: the batch is innermost, so that one SIMD vector holds the same pixel of
// LANES images and no layer is too narrow to fill it. A block of LANES images is copied into a zero-bordered tile
// (which settles padding, alignment and the last, incomplete block at once), then register-blocked loops run over it.
// Nothing is allocated or kept here, so any number of threads may call at once, each with its own scratch memory.

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "lanes.h"

using namespace ostraka;

// Mirrored by `Shape` in library.py.
struct Shape {
    int32_t batch, in, out;   // images, channels in, channels out
    int32_t height, width;    // of the input image
    int32_t kernel, padding;  // square kernel 3 or 5; padding 0..kernel-1 on every side
    int32_t relu, pool;       // flags
    int32_t outermost;        // flag: x is [image, channel, row, column]; every other tensor has the batch innermost
    int rows() const { return height + 2 * padding - kernel + 1; }  // of the convolution, before pooling
    int cols() const { return width + 2 * padding - kernel + 1; }
    ptrdiff_t weights() const { return ptrdiff_t(in) * out * kernel * kernel; }
};

namespace {

// ---- memory ---------------------------------------------------------------------------------------------------

// Hands out parts of the caller's scratch memory, aligned for vectors; without memory it only adds up sizes. The memory
// comes from outside because the C library gives large blocks back to the system at every free, and touching fresh
// pages at every call cost a third of the time.
struct Arena {
    char* memory;
    size_t used = 0;
    explicit Arena(void* memory) : memory(static_cast<char*>(memory)) {}
    template <class T>
    T* take(size_t count) {
        const size_t align = 64, from = used;
        used += (count * sizeof(T) + align - 1) / align * align;
#ifdef __SANITIZE_ADDRESS__
        if (memory) ASAN_POISON_MEMORY_REGION(memory + used, align);
        used += align;
#endif
        return memory ? reinterpret_cast<T*>(memory + from) : nullptr;
    }
};

void clear(Vec* first, ptrdiff_t count) { memset(static_cast<void*>(first), 0, count * sizeof(Vec)); }

// LANES images of `height` x `width` inside a border.
struct Tile {
    int channels, height, width, border;
    ptrdiff_t pitch, plane;  // in vectors: from row to row, from channel to channel
    Vec* pixels;
    Tile(Arena& arena, int channels, int height, int width, int border)
        : channels(channels), height(height), width(width), border(border), pitch(width + 2 * border),
          plane(pitch * (height + 2 * border)), pixels(arena.take<Vec>(size_t(channels) * plane)) {}
    Vec* corner(int channel) const { return pixels + channel * plane; }  // of the border
    Vec* inside(int channel, int row) const { return corner(channel) + (row + border) * pitch + border; }
    // Clears all but the first `rows` x `cols` pixels, which every block of images overwrites.
    void clear_around(int rows, int cols) {
        for (int c = 0; c < channels; c++) {
            clear(corner(c), border * pitch);
            for (int y = 0; y < rows; y++) {
                clear(inside(c, y) - border, border);
                clear(inside(c, y) + cols, width - cols + border);
            }
            clear(inside(c, rows) - border, (height - rows + border) * pitch);
        }
    }
};

// Which images of the batch a pass handles: element (channel, row, col) of a batch-innermost tensor is at
// offset(...) floats.
struct Images {
    ptrdiff_t batch, first;
    int lanes;
    Images(int batch, int first) : batch(batch), first(first), lanes(batch - first < LANES ? batch - first : LANES) {}
    ptrdiff_t offset(int channel, int row, int col, int height, int width) const {
        return ((ptrdiff_t(channel) * height + row) * width + col) * batch + first;
    }
};

// Up to LANES pixels of all images, read from images that lie one after the other (`distance` floats apart).
INLINE void copy_across(const float* from, ptrdiff_t distance, int lanes, int pixels, Vec* to) {
    Vec rows[LANES];
    UNROLL for (int i = 0; i < LANES; i++) rows[i] = i < lanes ? load<Vec>(from + i * distance, pixels) : Vec{};
    transpose(rows);
    if (pixels == LANES) {
        UNROLL for (int i = 0; i < LANES; i++) to[i] = rows[i];
    } else {
        for (int i = 0; i < pixels; i++) to[i] = rows[i];
    }
}

void copy_row_across(const float* from, ptrdiff_t distance, int lanes, int width, Vec* to) {
    if (width < LANES) return copy_across(from, distance, lanes, width, to);
    for (int x = 0; x < width; x += LANES) {
        const int at = x + LANES <= width ? x : width - LANES;  // the last step may go over some pixels again
        copy_across(from + at, distance, lanes, LANES, to + at);
    }
}

void copy_in(const float* from, bool outermost, const Images& im, Tile& tile) {
    const ptrdiff_t image = ptrdiff_t(tile.channels) * tile.height * tile.width;
    for (int c = 0; c < tile.channels; c++)
        for (int y = 0; y < tile.height; y++) {
            Vec* to = tile.inside(c, y);
            const ptrdiff_t pixel = (ptrdiff_t(c) * tile.height + y) * tile.width;
            if (outermost) copy_row_across(from + im.first * image + pixel, image, im.lanes, tile.width, to);
            else
                for (int x = 0; x < tile.width; x++)
                    to[x] = load<Vec>(from + (pixel + x) * im.batch + im.first, im.lanes);
        }
}

// ---- correlation: serves the forward pass and, with turned weights, the input gradient -------------------------

// Weights in the order the inner loop reads them: [block of outputs][input][ky][kx][output within the block].
// For the input gradient inputs and outputs change places and the kernel is turned by 180 degrees.
struct Weights {
    int in, taps;
    Split blocks;
    float* data;
    Weights(Arena& arena, const float* w, const Shape& s, bool turned, int block)
        : in(turned ? s.out : s.in), taps(s.kernel * s.kernel), blocks(turned ? s.in : s.out, block),
          data(arena.take<float>(s.weights())) {
        if (!w) return;
        float* to = data;
        for (int b = 0; b < blocks.parts; b++)
            for (int i = 0; i < in; i++)
                for (int t = 0; t < taps; t++)
                    for (int o = blocks.begin(b); o < blocks.begin(b + 1); o++)
                        *to++ = turned ? w[(ptrdiff_t(i) * s.in + o) * taps + taps - 1 - t]
                                       : w[(ptrdiff_t(o) * s.in + i) * taps + t];
    }
    const float* block(int b) const { return data + ptrdiff_t(blocks.begin(b)) * in * taps; }
};

// The K-1 columns next to a border of that width leave out their products with it (all zero): for a 5x5 kernel and the
// input gradient of a 14x14 image these are 2 of 7.
enum Edge { NONE, LEFT, RIGHT };

template <int K>
constexpr bool inside_image(Edge edge, int column) {
    return edge == NONE || (edge == LEFT) == (column >= K - 1);
}

// sums[c][y][x] += correlation of output channel c at NY x NX neighbouring pixels, kernel rows first..last-1.
// NC * NY * NX sums live in registers; the smaller of weights and pixels is held, the other streamed past it.
template <int K, Edge EDGE, int NC, int NY, int NX>
INLINE void correlate(const Vec* pixel, const Tile& tile, const float* w, int in, int first, int last,
                      Vec (&sums)[NC][NY][NX]) {
    for (int i = 0; i < in; i++)
        for (int ky = first; ky < last; ky++) {
            const Vec* row = pixel + i * tile.plane + ky * tile.pitch;
            const float* wk = w + (ptrdiff_t(i) * K + ky) * K * NC;
            UNROLL for (int kx = 0; kx < K; kx++) {
                if constexpr (NC < NY * NX) {
                    Vec held[NC];
                    UNROLL for (int c = 0; c < NC; c++) held[c] = all(wk[kx * NC + c]);
                    UNROLL for (int y = 0; y < NY; y++)
                        UNROLL for (int x = 0; x < NX; x++) {
                            if (!inside_image<K>(EDGE, x + kx)) continue;
                            const Vec p = row[y * tile.pitch + x + kx];
                            UNROLL for (int c = 0; c < NC; c++) sums[c][y][x] += held[c] * p;
                        }
                } else {
                    Vec held[NY][NX];
                    UNROLL for (int y = 0; y < NY; y++)
                        UNROLL for (int x = 0; x < NX; x++) held[y][x] = row[y * tile.pitch + x + kx];
                    UNROLL for (int c = 0; c < NC; c++) {
                        const Vec wc = all(wk[kx * NC + c]);
                        UNROLL for (int y = 0; y < NY; y++)
                            UNROLL for (int x = 0; x < NX; x++)
                                if (inside_image<K>(EDGE, x + kx)) sums[c][y][x] += wc * held[y][x];
                    }
                }
            }
        }
}

template <int NC, int NY, int NX>
INLINE void start(Vec (&sums)[NC][NY][NX], const float* bias) {
    UNROLL for (int c = 0; c < NC; c++)
        UNROLL for (int y = 0; y < NY; y++)
            UNROLL for (int x = 0; x < NX; x++) sums[c][y][x] = bias ? all(bias[c]) : Vec{};
}

// "Not <= 0" instead of "> 0": a NaN stays a NaN, as in torch.
INLINE Vec relu(Vec v) { return v <= Vec{} ? Vec{} : v; }

// Sums held by a dense strip: at most DENSE_NC channels of strip_width(channels) pixels.
constexpr int DENSE_NC = REGISTERS == 32 ? 4 : 3;
constexpr int strip_width(int channels) { return REGISTERS == 32 ? (channels < 4 ? 8 : 6) : 4; }
constexpr int POOL_NC = REGISTERS == 32 ? 6 : 3;

// Where a pass writes: a batch-innermost tensor of `rows` x `cols` pixels.
struct Target {
    const Images& im;
    int rows, cols;
    float* to;
    int8_t* picks;
    ptrdiff_t at(int channel, int row, int col) const { return im.offset(channel, row, col, rows, cols); }
};

// NX neighbouring pixels of row y, NC output channels.
template <int K, Edge EDGE, int NC, int NX>
void dense_strip(const Tile& tile, const Weights& w, int block, const float* bias, bool rectify, int y, int x,
                 const Target& t) {
    // Kernel rows that lie wholly in the border are skipped.
    const int above = tile.border - y, below = tile.border + tile.height - y;
    const int c0 = w.blocks.begin(block);
    Vec sums[NC][1][NX];
    start(sums, bias ? bias + c0 : nullptr);
    correlate<K, EDGE>(tile.corner(0) + y * tile.pitch + x, tile, w.block(block), w.in, above > 0 ? above : 0,
                       below < K ? below : K, sums);
    UNROLL for (int c = 0; c < NC; c++)
        UNROLL for (int i = 0; i < NX; i++)
            store(t.to + t.at(c0 + c, y, x + i), rectify ? relu(sums[c][0][i]) : sums[c][0][i], t.im.lanes);
}

// Every pixel of the correlation of a tile.
template <int K>
void dense(const Tile& tile, const Weights& w, const float* bias, bool rectify, const Target& t) {
    const bool edges = tile.border == K - 1 && tile.width >= K - 1;
    const int margin = edges ? K - 1 : 0;
    for (int y = 0; y < t.rows; y++)
        for (int b = 0; b < w.blocks.parts; b++)
            with_constant<DENSE_NC>(w.blocks.size(b), [&](auto nc) {
                if (edges) dense_strip<K, LEFT, nc(), K - 1>(tile, w, b, bias, rectify, y, 0, t);
                constexpr int most = strip_width(nc());
                const Split strips(t.cols - 2 * margin, most);
                for (int s = 0; s < strips.parts; s++)
                    with_constant<most>(strips.size(s), [&](auto nx) {
                        dense_strip<K, NONE, nc(), nx()>(tile, w, b, bias, rectify, y, margin + strips.begin(s), t);
                    });
                if (edges) dense_strip<K, RIGHT, nc(), K - 1>(tile, w, b, bias, rectify, y, t.cols - margin, t);
            });
}

// Largest of a 2x2 window and its place 0..3 (the first among equals, and a NaN beats everything: as torch).
INLINE void largest(const Vec (&window)[2][2], Vec& best, Mask& place) {
    best = window[0][0];
    place = Mask{};
    UNROLL for (int k = 1; k < 4; k++) {
        const Vec v = window[k / 2][k % 2];
        const Mask better = (v > best) | (v != v);
        best = better ? v : best;
        place = better ? all(k) : place;
    }
}

// Correlation, ReLU and max-pool in one pass: the unpooled image is never written. `picks` keeps for the backward
// pass which pixel of each window won, or -1 where the ReLU let nothing through.
template <int K, int NC>
void pooled_window(const Tile& tile, const Weights& w, int block, const float* bias, bool rectify, int y, int x,
                   const Target& t) {
    const int c0 = w.blocks.begin(block);
    Vec sums[NC][2][2];
    start(sums, bias ? bias + c0 : nullptr);
    correlate<K, NONE>(tile.corner(0) + 2 * y * tile.pitch + 2 * x, tile, w.block(block), w.in, 0, K, sums);
    UNROLL for (int c = 0; c < NC; c++) {
        Vec best;
        Mask place;
        largest(sums[c], best, place);
        if (rectify) {
            place = best <= Vec{} ? all(-1) : place;
            best = relu(best);
        }
        store(t.to + t.at(c0 + c, y, x), best, t.im.lanes);
        if (t.picks) store(t.picks + t.at(c0 + c, y, x), __builtin_convertvector(place, Bytes), t.im.lanes);
    }
}

template <int K>
void pooled(const Tile& tile, const Weights& w, const float* bias, bool rectify, const Target& t) {
    for (int y = 0; y < t.rows; y++)
        for (int b = 0; b < w.blocks.parts; b++)
            with_constant<POOL_NC>(w.blocks.size(b), [&](auto nc) {
                for (int x = 0; x < t.cols; x++) pooled_window<K, nc()>(tile, w, b, bias, rectify, y, x, t);
            });
}

// ---- gradients ------------------------------------------------------------------------------------------------

// Gradient of the convolution's own output, before ReLU and pooling, into `tile`; adds each channel's total to `bias`.
void copy_back(const Shape& s, const float* grad, const float* y, const int8_t* picks, const Images& im, Tile& tile,
               Vec* bias) {
    const int rows = s.pool ? s.rows() / 2 : s.rows(), cols = s.pool ? s.cols() / 2 : s.cols();
    for (int c = 0; c < s.out; c++) {
        Vec total = bias[c];
        for (int r = 0; r < rows; r++)
            for (int x = 0; x < cols; x++) {
                const ptrdiff_t at = im.offset(c, r, x, rows, cols);
                Vec g = load<Vec>(grad + at, im.lanes);
                if (s.pool) {
                    const Mask place = __builtin_convertvector(load<Bytes>(picks + at, im.lanes), Mask);
                    Vec* top = tile.inside(c, 2 * r) + 2 * x;
                    UNROLL for (int k = 0; k < 4; k++) top[k / 2 * tile.pitch + k % 2] = place == all(k) ? g : Vec{};
                    g = place < Mask{} ? Vec{} : g;
                } else {
                    if (s.relu) g = load<Vec>(y + at, im.lanes) <= Vec{} ? Vec{} : g;
                    tile.inside(c, r)[x] = g;
                }
                total += g;
            }
        bias[c] = total;
    }
}

// One kernel row of the weight gradient: sums[c][kx] += sum over pixels of grad[c] * image shifted by kx.
template <int K, int NC>
INLINE void taps(const Vec* grad, const Tile& g, const Vec* image, const Tile& im, int rows, int cols, Vec* sums,
                 ptrdiff_t stride) {
    Vec acc[NC][K];
    UNROLL for (int c = 0; c < NC; c++)
        UNROLL for (int k = 0; k < K; k++) acc[c][k] = sums[c * stride + k];
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < cols; x++) {
            Vec p[K];
            UNROLL for (int k = 0; k < K; k++) p[k] = image[y * im.pitch + x + k];
            UNROLL for (int c = 0; c < NC; c++) {
                const Vec d = grad[c * g.plane + y * g.pitch + x];
                UNROLL for (int k = 0; k < K; k++) acc[c][k] += d * p[k];
            }
        }
    UNROLL for (int c = 0; c < NC; c++)
        UNROLL for (int k = 0; k < K; k++) sums[c * stride + k] = acc[c][k];
}

// Adds LANES images to `sums`, [out][in][ky][kx] vectors of per-lane totals. Rows go in bands that stay in the
// first-level cache while every kernel row passes over them.
template <int K>
void weight_gradient(const Shape& s, const Tile& grad, const Tile& image, Vec* sums) {
    constexpr int NC = REGISTERS == 32 ? (K == 5 ? 4 : 6) : (K == 5 ? 2 : 3);
    constexpr int BAND = 64;  // pixels
    const Split blocks(s.out, NC), bands(s.rows(), s.cols() < BAND ? BAND / s.cols() : 1);
    const ptrdiff_t stride = ptrdiff_t(s.in) * K * K;
    for (int b = 0; b < blocks.parts; b++)
        with_constant<NC>(blocks.size(b), [&](auto nc) {
            const int c0 = blocks.begin(b);
            for (int band = 0; band < bands.parts; band++) {
                const int y = bands.begin(band);
                for (int i = 0; i < s.in; i++)
                    for (int ky = 0; ky < K; ky++)
                        taps<K, nc()>(grad.inside(c0, y), grad, image.corner(i) + (y + ky) * image.pitch, image,
                                      bands.size(band), s.cols(), sums + c0 * stride + (ptrdiff_t(i) * K + ky) * K,
                                      stride);
            }
        });
}

// ---- whole batches --------------------------------------------------------------------------------------------

template <int K>
void forward(const Shape& s, const float* x, const float* w, const float* bias, float* y, int8_t* picks, Arena arena) {
    Tile image(arena, s.in, s.height, s.width, s.padding);
    const Weights weights(arena, w, s, false, s.pool ? POOL_NC : DENSE_NC);
    image.clear_around(s.height, s.width);
    for (int first = 0; first < s.batch; first += LANES) {
        const Images im(s.batch, first);
        copy_in(x, s.outermost, im, image);
        if (s.pool) pooled<K>(image, weights, bias, s.relu, {im, s.rows() / 2, s.cols() / 2, y, picks});
        else dense<K>(image, weights, bias, s.relu, {im, s.rows(), s.cols(), y, nullptr});
    }
}

void totals(const Vec* sums, ptrdiff_t count, float* to) {
    for (ptrdiff_t i = 0; i < count; i++) to[i] = sum(sums[i]);
}

template <int K>
void backward(const Shape& s, const float* x, const float* w, const float* y, const int8_t* picks, const float* grad,
              float* grad_x, float* grad_w, float* grad_bias, Arena arena) {
    Tile g(arena, s.out, s.rows(), s.cols(), grad_x ? K - 1 - s.padding : 0);
    Tile image(arena, grad_w ? s.in : 0, s.height, s.width, s.padding);
    const Weights turned(arena, w, s, true, DENSE_NC);
    Vec *sums = arena.take<Vec>(grad_w ? s.weights() : 0), *bias = arena.take<Vec>(s.out);
    g.clear_around(s.pool ? s.rows() / 2 * 2 : s.rows(), s.pool ? s.cols() / 2 * 2 : s.cols());
    image.clear_around(s.height, s.width);
    clear(sums, grad_w ? s.weights() : 0);
    clear(bias, s.out);
    for (int first = 0; first < s.batch; first += LANES) {
        const Images im(s.batch, first);
        copy_back(s, grad, y, picks, im, g, bias);
        if (grad_x) dense<K>(g, turned, nullptr, false, {im, s.height, s.width, grad_x, nullptr});
        if (grad_w) {
            copy_in(x, s.outermost, im, image);
            weight_gradient<K>(s, g, image, sums);
        }
    }
    if (grad_w) totals(sums, s.weights(), grad_w);
    if (grad_bias) totals(bias, s.out, grad_bias);
}

}  // namespace

// ---- interface ------------------------------------------------------------------------------------------------

#pragma GCC visibility push(default)
extern "C" {

// Raised whenever a signature or Shape changes; the loader refuses another number.
int ostraka_interface() { return 2; }

// Highest level this CPU (and its operating system) can run: 2, 3 (AVX2 + FMA) or 4 (AVX-512).
int ostraka_cpu_level() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool three = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool four = three && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return four ? 4 : three ? 3 : 2;
#else
    return 2;
#endif
}

// Bytes of scratch memory, aligned to 64, that either pass may use.
size_t ostraka_scratch(const Shape* s) {
    Arena arena(nullptr);
    Tile(arena, s->in, s->height, s->width, s->padding);
    Tile(arena, s->out, s->rows(), s->cols(), s->kernel - 1 - s->padding);
    arena.take<float>(s->weights());
    arena.take<Vec>(s->weights());
    arena.take<Vec>(s->out);
    return arena.used;
}

// y and picks are [out, rows, cols, batch] (pooled size where s->pool); picks is only used with pooling and may be
// null when no gradient will be asked for. bias may be null. Both passes return 0, or 1 for an unknown kernel size.
int ostraka_forward(const Shape* s, const float* x, const float* w, const float* bias, float* y, int8_t* picks,
                    void* scratch) {
    if (s->kernel == 3) return forward<3>(*s, x, w, bias, y, picks, Arena(scratch)), 0;
    if (s->kernel == 5) return forward<5>(*s, x, w, bias, y, picks, Arena(scratch)), 0;
    return 1;
}

// Only the gradients whose pointer is not null are computed. y is needed for ReLU without pooling, picks for pooling,
// x for grad_w, w for grad_x.
int ostraka_backward(const Shape* s, const float* x, const float* w, const float* y, const int8_t* picks,
                     const float* grad, float* grad_x, float* grad_w, float* grad_bias, void* scratch) {
    if (s->kernel == 3) return backward<3>(*s, x, w, y, picks, grad, grad_x, grad_w, grad_bias, Arena(scratch)), 0;
    if (s->kernel == 5) return backward<5>(*s, x, w, y, picks, grad, grad_x, grad_w, grad_bias, Arena(scratch)), 0;
    return 1;
}
}
#pragma GCC visibility pop
