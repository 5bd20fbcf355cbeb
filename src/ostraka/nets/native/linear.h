// Fully connected layers of LANES samples: values are vectors, one for each unit; weights are [out][in] as in torch.
#pragma once

#include <cstddef>

#include "elementwise.h"

namespace ostraka {

constexpr int UNITS = REGISTERS == 32 ? 24 : 12;  // sums that live in registers

// y[o] = activation(bias[o] + sum over i of w[o][i] x[i]) of N neighbouring units. Three rows of the weights share
// one pointer: a processor can address `row + stride` and `row + 2 * stride`, but not more.
template <int N>
void linear_units(const float* w, ptrdiff_t in, const float* bias, const Vec* x, Activation act, Vec* y) {
    Vec sums[N];
    const float* rows[(N + 2) / 3];
    UNROLL for (int o = 0; o < N; o++) sums[o] = bias ? all(bias[o]) : Vec{};
    UNROLL for (int r = 0; r < (N + 2) / 3; r++) rows[r] = w + 3 * r * in;
    for (ptrdiff_t i = 0; i < in; i++) {
        const Vec v = x[i];
        UNROLL for (int o = 0; o < N; o++) sums[o] += all(rows[o / 3][o % 3 * in]) * v;
        UNROLL for (int r = 0; r < (N + 2) / 3; r++) rows[r]++;
    }
    UNROLL for (int o = 0; o < N; o++) y[o] = activate(act, sums[o]);
}

inline void linear(const float* w, const float* bias, int in, int out, const Vec* x, Activation act, Vec* y) {
    const Split blocks(out, UNITS);
    for (int b = 0; b < blocks.parts; b++) {
        const int o = blocks.begin(b);
        with_constant<UNITS>(blocks.size(b), [&](auto n) {
            linear_units<n()>(w + ptrdiff_t(o) * in, in, bias ? bias + o : nullptr, x, act, y + o);
        });
    }
}

// to[i] = sum over o of w[o][i] grad[o], of N neighbouring units.
template <int N>
void linear_input_units(const float* w, ptrdiff_t in, int out, const Vec* grad, Vec* to) {
    Vec sums[N];
    UNROLL for (int i = 0; i < N; i++) sums[i] = Vec{};
    for (int o = 0; o < out; o++, w += in) {
        const Vec g = grad[o];
        UNROLL for (int i = 0; i < N; i++) sums[i] += all(w[i]) * g;
    }
    UNROLL for (int i = 0; i < N; i++) to[i] = sums[i];
}

inline void linear_input_gradient(const float* w, int in, int out, const Vec* grad, Vec* to) {
    const Split blocks(in, UNITS);
    for (int b = 0; b < blocks.parts; b++)
        with_constant<UNITS>(blocks.size(b), [&](auto n) {
            linear_input_units<n()>(w + blocks.begin(b), in, out, grad, to + blocks.begin(b));
        });
}

// NO rows and NV vectors of columns of the weight gradient; the last vector has `last` columns.
template <int NO, int NV>
INLINE void weight_patch(const Vec* grad, const Vec* turned, ptrdiff_t pitch, float* to, ptrdiff_t in, int last) {
    Vec sums[NO][NV];
    const auto width = [&](int v) { return v + 1 < NV ? LANES : last; };
    UNROLL for (int o = 0; o < NO; o++)
        UNROLL for (int v = 0; v < NV; v++) sums[o][v] = load<Vec>(to + o * in + v * LANES, width(v));
    for (int n = 0; n < LANES; n++) {
        Vec x[NV];
        UNROLL for (int v = 0; v < NV; v++) x[v] = turned[n * pitch + v];
        UNROLL for (int o = 0; o < NO; o++) {
            const Vec g = all(reinterpret_cast<const float*>(grad + o)[n]);
            UNROLL for (int v = 0; v < NV; v++) sums[o][v] += g * x[v];
        }
    }
    UNROLL for (int o = 0; o < NO; o++)
        UNROLL for (int v = 0; v < NV; v++) store(to + o * in + v * LANES, sums[o][v], width(v));
}

// Adds LANES samples to the weight gradient `to`. Here the columns are the lanes, so x is turned first: `turned` has
// room for LANES rows of `in` values, in whole vectors.
inline void linear_weight_gradient(const Vec* grad, const Vec* x, int in, int out, float* to, Vec* turned) {
    constexpr int NO = REGISTERS == 32 ? 6 : 3, NV = REGISTERS == 32 ? 4 : 3;
    const ptrdiff_t pitch = (in + LANES - 1) / LANES;
    for (int p = 0; p < pitch; p++) {
        Vec rows[LANES];
        UNROLL for (int i = 0; i < LANES; i++) rows[i] = p * LANES + i < in ? x[p * LANES + i] : Vec{};
        transpose(rows);
        UNROLL for (int i = 0; i < LANES; i++) turned[i * pitch + p] = rows[i];
    }
    const Split columns(int(pitch), NV), blocks(out, NO);
    for (int c = 0; c < columns.parts; c++)
        for (int b = 0; b < blocks.parts; b++)
            with_constant<NV>(columns.size(c), [&](auto nv) {
                with_constant<NO>(blocks.size(b), [&](auto no) {
                    const int first = columns.begin(c), o = blocks.begin(b), left = in - (first + nv() - 1) * LANES;
                    weight_patch<no(), nv()>(grad + o, turned + first, pitch, to + ptrdiff_t(o) * in + first * LANES,
                                             in, left < LANES ? left : LANES);
                });
            });
}

}  // namespace ostraka
