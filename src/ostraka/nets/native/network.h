// A network of convolutions and fully connected layers, one behind the other, for LANES samples at a time: they pass
// all layers before the next ones begin, so that everything they leave behind stays in the cache.
#pragma once

#include "convolution_gradient.h"
#include "linear.h"

namespace ostraka {

constexpr int MOST_LAYERS = 16;

// Mirrored by `Network` in library.py.
struct Network {
    int32_t batch, count;
    Layer layers[MOST_LAYERS];
    const Layer& last() const { return layers[count - 1]; }
};

// Addresses as torch's tensors have them: for every layer weight and bias; null where there is none, or where a
// gradient is not wanted. Gradients are added to what is there.
struct Parameters {
    const float* const* at;
    const float* weight(int layer) const { return at[2 * layer]; }
    const float* bias(int layer) const { return at[2 * layer + 1]; }
};
struct Gradients {
    float* const* at;
    float* weight(int layer) const { return at ? at[2 * layer] : nullptr; }
    float* bias(int layer) const { return at ? at[2 * layer + 1] : nullptr; }
    bool wanted(int layer) const { return weight(layer) || bias(layer); }
};

// The values of LANES samples on their way: what each layer sees, what pooling left behind, what the last one gives.
struct Values {
    Tile seen[MOST_LAYERS + 1];
    Pooled pooled[MOST_LAYERS];
    Values(Arena& arena, const Network& net) {
        const Layer& first = net.layers[0];
        seen[0] = Tile(arena, first.in, first.height, first.width, first.padding);
        for (int i = 0; i < net.count; i++) {
            const Layer& s = net.layers[i];
            const int border = i + 1 < net.count ? net.layers[i + 1].padding : 0;
            seen[i + 1] = Tile(arena, s.out, s.out_rows(), s.out_cols(), border);
            if (s.pool == MAX_POOL) pooled[i].picks = arena.take<Bytes>(size_t(s.out) * s.out_rows() * s.out_cols());
            if (s.pool == MEAN_POOL) pooled[i].values = Tile(arena, s.out, s.rows(), s.cols(), 0);
        }
    }
    // Padding is zero; every pass writes all else before it reads it.
    void clear_borders(const Network& net) const {
        for (int i = 0; i < net.count; i++) seen[i].clear_around(seen[i].height, seen[i].width);
    }
};

// Working memory of the backward pass, and the sums over all samples of a call.
struct Slopes {
    Tile behind[MOST_LAYERS + 1];  // the gradient in what Values has there
    Tile inner[MOST_LAYERS];       // of convolutions: the gradient before activation and pooling
    Vec *weights[MOST_LAYERS], *biases[MOST_LAYERS];
    Vec* turned;
    Slopes(Arena& arena, const Network& net) {
        const Layer& first = net.layers[0];
        behind[0] = Tile(arena, first.in, first.height, first.width, 0);
        int widest = 0;
        for (int i = 0; i < net.count; i++) {
            const Layer& s = net.layers[i];
            const bool conv = s.convolves();
            behind[i + 1] = Tile(arena, s.out, s.out_rows(), s.out_cols(), 0);
            if (conv) inner[i] = Tile(arena, s.out, s.rows(), s.cols(), s.kernel - 1 - s.padding);
            weights[i] = arena.take<Vec>(conv ? s.weights() : 0);
            biases[i] = arena.take<Vec>(s.out);
            if (!conv && s.in > widest) widest = s.in;
        }
        turned = arena.take<Vec>((widest + LANES - 1) / LANES * LANES);
    }
    void clear_sums(const Network& net, const Gradients& grads) const {
        for (int i = 0; i < net.count; i++) {
            const Layer& s = net.layers[i];
            clear(biases[i], s.out);
            if (s.convolves()) {
                inner[i].clear_around(s.out_rows() * (s.pool ? 2 : 1), s.out_cols() * (s.pool ? 2 : 1));
                clear(weights[i], grads.weight(i) ? s.weights() : 0);
            }
        }
    }
    void finish(const Network& net, const Gradients& grads) const {
        for (int i = 0; i < net.count; i++) {
            const Layer& s = net.layers[i];
            if (grads.weight(i) && s.convolves()) add_totals(weights[i], s.weights(), grads.weight(i));
            if (grads.bias(i)) add_totals(biases[i], s.out, grads.bias(i));
        }
    }
    static void add_totals(const Vec* sums, ptrdiff_t count, float* to) {
        for (ptrdiff_t i = 0; i < count; i++) to[i] += sum(sums[i]);
    }
};

// The convolutions' weights as the inner loops read them.
struct Filters {
    Weights ahead[MOST_LAYERS], back[MOST_LAYERS];
    Filters(Arena& arena, const Network& net) {
        for (int i = 0; i < net.count; i++)
            if (net.layers[i].convolves()) {
                ahead[i] = Weights(arena, net.layers[i], false, net.layers[i].pool ? POOL_NC : DENSE_NC);
                back[i] = Weights(arena, net.layers[i], true, DENSE_NC);
            }
    }
    void fill(const Network& net, const Parameters& params, bool forward, bool backward) const {
        for (int i = 0; i < net.count; i++)
            if (net.layers[i].convolves()) {
                if (forward) ahead[i].fill(params.weight(i), false);
                if (backward) back[i].fill(params.weight(i), true);
            }
    }
};

template <class F>
void with_kernel(int kernel, F f) {
    if (kernel == 3) f(std::integral_constant<int, 3>{});
    if (kernel == 5) f(std::integral_constant<int, 5>{});
}

inline void forward(const Network& net, const Parameters& params, const Filters& filters, const Values& v) {
    for (int i = 0; i < net.count; i++) {
        const Layer& s = net.layers[i];
        const Tile &from = v.seen[i], &to = v.seen[i + 1];
        if (!s.convolves()) linear(params.weight(i), params.bias(i), s.in, s.out, from.pixels, s.activation, to.pixels);
        with_kernel(s.kernel, [&](auto k) {
            if (s.pool) pooled<k()>(from, filters.ahead[i], params.bias(i), s, to, v.pooled[i]);
            else dense<k()>(from, filters.ahead[i], params.bias(i), {to, s.activation, nullptr});
        });
    }
}

// From the gradient in what the last layer gave, in slopes.behind[count], down to the lowest layer with a wanted
// gradient, or to the samples: into slopes.behind[0], or, with a `step`, as a move of the samples themselves.
inline void backward(const Network& net, const Parameters& params, const Filters& filters, const Values& v,
                     const Slopes& slopes, const Gradients& grads, bool to_samples, const Step* step) {
    int lowest = 0;
    while (!to_samples && lowest < net.count && !grads.wanted(lowest)) lowest++;
    for (int i = net.count - 1; i >= lowest; i--) {
        const Layer& s = net.layers[i];
        const Tile &behind = slopes.behind[i + 1], &before = slopes.behind[i];
        const bool goes_on = to_samples || i > lowest;
        const Target target{step && i == 0 ? v.seen[0] : before, IDENTITY, i == 0 ? step : nullptr};
        if (!s.convolves()) {
            Vec* g = behind.pixels;
            for (int o = 0; o < s.out; o++) {
                g[o] = through_activation(s.activation, g[o], v.seen[i + 1].pixels[o]);
                if (grads.bias(i)) slopes.biases[i][o] += g[o];
            }
            if (grads.weight(i)) linear_weight_gradient(g, v.seen[i].pixels, s.in, s.out, grads.weight(i), slopes.turned);
            if (goes_on) linear_input_gradient(params.weight(i), s.in, s.out, g, before.pixels);
            if (goes_on && target.step)
                for (int p = 0; p < s.in; p++) v.seen[0].pixels[p] = step->moved(v.seen[0].pixels[p], before.pixels[p]);
            continue;
        }
        spread(s, behind, v.seen[i + 1], v.pooled[i], slopes.inner[i],
               grads.bias(i) ? slopes.biases[i] : nullptr);
        with_kernel(s.kernel, [&](auto k) {
            if (grads.weight(i)) weight_gradient<k()>(s, slopes.inner[i], v.seen[i], slopes.weights[i]);
            if (goes_on) dense<k()>(slopes.inner[i], filters.back[i], nullptr, target);
        });
    }
}

}  // namespace ostraka
