// Convolution of LANES images, stride 1, with activation and 2x2 pooling: serves the forward pass and, with turned
// weights, the gradient in the images.
#pragma once

#include "elementwise.h"
#include "tile.h"

namespace ostraka {

enum Pooling : int32_t { NO_POOL, MAX_POOL, MEAN_POOL };

// One layer of a network. Mirrored by `Layer` in library.py.
struct Layer {
    int32_t in, out;          // channels, or units of a fully connected layer
    int32_t height, width;    // of the input image; 1 if fully connected
    int32_t kernel, padding;  // square kernel 3 or 5, padding 0..kernel-1 on every side; kernel 0: fully connected
    Activation activation;
    Pooling pool;             // after the activation
    bool convolves() const { return kernel > 0; }
    int rows() const { return convolves() ? height + 2 * padding - kernel + 1 : 1; }  // before pooling
    int cols() const { return convolves() ? width + 2 * padding - kernel + 1 : 1; }
    int out_rows() const { return pool ? rows() / 2 : rows(); }
    int out_cols() const { return pool ? cols() / 2 : cols(); }
    ptrdiff_t weights() const { return ptrdiff_t(in) * out * (convolves() ? kernel * kernel : 1); }
};

// Weights in the order the inner loop reads them: [block of outputs][input][ky][kx][output within the block].
// For the input gradient inputs and outputs change places and the kernel is turned by 180 degrees.
struct Weights {
    int in = 0, taps = 0;
    Split blocks{0, 1};
    float* data = nullptr;
    Weights() = default;
    Weights(Arena& arena, const Layer& s, bool turned, int block)
        : in(turned ? s.out : s.in), taps(s.kernel * s.kernel), blocks(turned ? s.in : s.out, block),
          data(arena.take<float>(s.weights())) {}
    void fill(const float* w, bool turned) const {
        float* to = data;
        for (int b = 0; b < blocks.parts; b++)
            for (int i = 0; i < in; i++)
                for (int t = 0; t < taps; t++)
                    for (int o = blocks.begin(b); o < blocks.begin(b + 1); o++)
                        *to++ = turned ? w[(ptrdiff_t(i) * blocks.length + o) * taps + taps - 1 - t]
                                       : w[(ptrdiff_t(o) * in + i) * taps + t];
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

// Sums held by a dense strip: at most DENSE_NC channels of strip_width(channels) pixels.
constexpr int DENSE_NC = REGISTERS == 32 ? 4 : 3;
constexpr int strip_width(int channels) { return REGISTERS == 32 ? (channels < 4 ? 8 : 6) : 4; }
constexpr int POOL_NC = REGISTERS == 32 ? 6 : 3;

// One step of the attack: every value moves by `size` along the sign of its gradient and stays within low..high.
struct Step {
    float size, low, high;
    INLINE Vec moved(Vec value, Vec gradient) const {
        value += sign(gradient) * size;
        value = value < all(low) ? all(low) : value;
        return value > all(high) ? all(high) : value;
    }
};

// Where a dense correlation writes: values after an activation, or, with a `step`, moves of the values there.
struct Target {
    const Tile& to;
    Activation activation;
    const Step* step;
    INLINE void put(int channel, int row, int col, Vec v) const {
        Vec& place = to.inside(channel, row)[col];
        place = step ? step->moved(place, v) : activate(activation, v);
    }
};

// NX neighbouring pixels of row y, NC output channels.
template <int K, Edge EDGE, int NC, int NX>
void dense_strip(const Tile& tile, const Weights& w, int block, const float* bias, int y, int x, const Target& t) {
    // Kernel rows that lie wholly in the border are skipped.
    const int above = tile.border - y, below = tile.border + tile.height - y;
    const int c0 = w.blocks.begin(block);
    Vec sums[NC][1][NX];
    start(sums, bias ? bias + c0 : nullptr);
    correlate<K, EDGE>(tile.corner(0) + y * tile.pitch + x, tile, w.block(block), w.in, above > 0 ? above : 0,
                       below < K ? below : K, sums);
    UNROLL for (int c = 0; c < NC; c++)
        UNROLL for (int i = 0; i < NX; i++) t.put(c0 + c, y, x + i, sums[c][0][i]);
}

// Every pixel of the correlation of a tile.
template <int K>
void dense(const Tile& tile, const Weights& w, const float* bias, const Target& t) {
    const bool edges = tile.border == K - 1 && tile.width >= K - 1;
    const int margin = edges ? K - 1 : 0;
    for (int y = 0; y < t.to.height; y++)
        for (int b = 0; b < w.blocks.parts; b++)
            with_constant<DENSE_NC>(w.blocks.size(b), [&](auto nc) {
                if (edges) dense_strip<K, LEFT, nc(), K - 1>(tile, w, b, bias, y, 0, t);
                constexpr int most = strip_width(nc());
                const Split strips(t.to.width - 2 * margin, most);
                for (int s = 0; s < strips.parts; s++)
                    with_constant<most>(strips.size(s), [&](auto nx) {
                        dense_strip<K, NONE, nc(), nx()>(tile, w, b, bias, y, margin + strips.begin(s), t);
                    });
                if (edges) dense_strip<K, RIGHT, nc(), K - 1>(tile, w, b, bias, y, t.to.width - margin, t);
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

// What pooling leaves behind for the backward pass: which pixel of each window was the largest (-1 where the ReLU
// let nothing through), or all values before their mean was taken.
struct Pooled {
    Bytes* picks;  // [channel][row][column]
    Tile values;
};

template <int NC>
INLINE void pool_window(const Vec (&sums)[NC][2][2], const Layer& s, int c0, int y, int x, const Tile& to,
                        const Pooled& kept) {
    UNROLL for (int c = 0; c < NC; c++) {
        Vec& place = to.inside(c0 + c, y)[x];
        if (s.pool == MAX_POOL) {
            Vec best;
            Mask pick;
            largest(sums[c], best, pick);
            if (s.activation == RELU) pick = best <= Vec{} ? all(-1) : pick;
            place = activate(s.activation, best);  // no activation changes the order of values
            kept.picks[(ptrdiff_t(c0 + c) * to.height + y) * to.width + x] = __builtin_convertvector(pick, Bytes);
        } else {
            Vec total{};
            UNROLL for (int k = 0; k < 4; k++) {
                const Vec v = activate(s.activation, sums[c][k / 2][k % 2]);
                kept.values.inside(c0 + c, 2 * y + k / 2)[2 * x + k % 2] = v;
                total += v;
            }
            place = total * 0.25f;
        }
    }
}

// Correlation, activation and pooling in one pass.
template <int K>
void pooled(const Tile& tile, const Weights& w, const float* bias, const Layer& s, const Tile& to,
            const Pooled& kept) {
    for (int y = 0; y < to.height; y++)
        for (int b = 0; b < w.blocks.parts; b++)
            with_constant<POOL_NC>(w.blocks.size(b), [&](auto nc) {
                const int c0 = w.blocks.begin(b);
                for (int x = 0; x < to.width; x++) {
                    Vec sums[nc()][2][2];
                    start(sums, bias ? bias + c0 : nullptr);
                    correlate<K, NONE>(tile.corner(0) + 2 * y * tile.pitch + 2 * x, tile, w.block(b), w.in, 0, K, sums);
                    pool_window(sums, s, c0, y, x, to, kept);
                }
            });
}

}  // namespace ostraka
