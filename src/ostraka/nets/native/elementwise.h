// Functions of single values: activations, their slopes, and the gradient of cross-entropy.
#pragma once

#include <cmath>

#include "lanes.h"

namespace ostraka {

enum Activation : int32_t { IDENTITY, RELU, TANH };

// exp(v) - 1 for v up to 88, exact near 0: exp(v) = 2^n exp(r) with |r| <= ln(2) / 2, and exp(r) - 1 by its series.
INLINE Vec exp_minus_one(Vec v) {
    const Vec shift = all(12582912.0f);  // 1.5 * 2^23: adding it rounds to a whole number
    v = v < all(-87.0f) ? all(-87.0f) : v;
    const Vec n = (v * 1.44269504f + shift) - shift;
    const Vec r = (v - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    const Vec series = r * r *
        (1.0f / 2 + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040))))));
    const Mask exponent = (__builtin_convertvector(n, Mask) + 127) << 23;
    Vec power;
    memcpy(&power, &exponent, sizeof power);
    return power * (r + series) + (power - 1.0f);
}

// Not inlined: called for many sums at once, it would fill the instruction cache. A NaN stays a NaN.
inline __attribute__((noinline)) Vec tanh(Vec v) {
    const Vec twice = v + v, bounded = twice > all(40.0f) ? all(40.0f) : twice;
    const Vec e = exp_minus_one(bounded), t = e / (e + 2.0f);
    return v != v ? v : t;
}

// "Not <= 0" instead of "> 0": a NaN stays a NaN, as in torch.
INLINE Vec relu(Vec v) { return v <= Vec{} ? Vec{} : v; }

INLINE Vec activate(Activation a, Vec v) { return a == RELU ? relu(v) : a == TANH ? tanh(v) : v; }

// The gradient before an activation, from that behind it and the value it gave.
INLINE Vec through_activation(Activation a, Vec grad, Vec value) {
    return a == RELU ? (value <= Vec{} ? Vec{} : grad) : a == TANH ? grad * (1.0f - value * value) : grad;
}

INLINE Vec sign(Vec v) { return (v > Vec{} ? all(1.0f) : Vec{}) - (v < Vec{} ? all(1.0f) : Vec{}); }

// Adds to `grad` the gradient of weight * cross-entropy of the class `target`, each lane its own, as if the class
// `hidden` were not there (-1: none is hidden); returns the weighted cross-entropy. A class that does not exist gives NaN.
inline double cross_entropy(const Vec* logits, int count, Mask target, Mask hidden, Vec weight, int lanes, Vec* grad) {
    const float least = -__builtin_inff(), nothing = __builtin_nanf("");
    Vec most = all(least), aim = all(nothing), total{};
    for (int k = 0; k < count; k++) {
        const Vec v = hidden == all(k) ? all(least) : logits[k];
        most = v > most ? v : most;
        aim = target == all(k) ? v : aim;
    }
    const auto part = [&](int k) {
        return hidden == all(k) ? Vec{} : exp_minus_one(logits[k] - most) + 1.0f;
    };
    for (int k = 0; k < count; k++) total += part(k);
    const Vec share = weight / total;
    for (int k = 0; k < count; k++) grad[k] += part(k) * share - (target == all(k) ? weight : Vec{});
    double loss = 0;
    for (int i = 0; i < lanes; i++)
        if (weight[i] != 0) loss += double(weight[i]) * (std::log(double(total[i])) + double(most[i]) - double(aim[i]));
    return loss;
}

}  // namespace ostraka
