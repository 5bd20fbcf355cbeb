// Gradients of a convolution of LANES images, in its own output and in its weights.
#pragma once

#include "convolution.h"

namespace ostraka {

// The gradient of the convolution's own output, before activation and pooling, into `tile`; adds each channel's total
// to `bias`, unless that is null. `grad` is the gradient behind both, `y` the values there.
inline void spread(const Layer& s, const Tile& grad, const Tile& y, const Pooled& kept, const Tile& tile, Vec* bias) {
    for (int c = 0; c < s.out; c++) {
        Vec total{};
        for (int r = 0; r < grad.height; r++)
            for (int x = 0; x < grad.width; x++) {
                Vec g = grad.inside(c, r)[x];
                if (s.pool == NO_POOL) {
                    g = through_activation(s.activation, g, y.inside(c, r)[x]);
                    tile.inside(c, r)[x] = g;
                    total += g;
                    continue;
                }
                Vec* window = tile.inside(c, 2 * r) + 2 * x;
                if (s.pool == MAX_POOL) {
                    const Mask place = __builtin_convertvector(
                        kept.picks[(ptrdiff_t(c) * grad.height + r) * grad.width + x], Mask);
                    if (s.activation == TANH) g = through_activation(TANH, g, y.inside(c, r)[x]);
                    UNROLL for (int k = 0; k < 4; k++) window[k / 2 * tile.pitch + k % 2] = place == all(k) ? g : Vec{};
                    total += place < Mask{} ? Vec{} : g;
                } else {
                    UNROLL for (int k = 0; k < 4; k++) {
                        const Vec value = kept.values.inside(c, 2 * r + k / 2)[2 * x + k % 2];
                        const Vec part = through_activation(s.activation, g * 0.25f, value);
                        window[k / 2 * tile.pitch + k % 2] = part;
                        total += part;
                    }
                }
            }
        if (bias) bias[c] += total;
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
void weight_gradient(const Layer& s, const Tile& grad, const Tile& image, Vec* sums) {
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

}  // namespace ostraka
