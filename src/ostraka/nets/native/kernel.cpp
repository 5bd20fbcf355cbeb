// Small networks on a CPU core: forward pass, gradients, and the adversarial steps of FedOV, each in one call.
//
// Inside, the batch is innermost: one SIMD vector holds the same value of LANES samples, so that no layer is too narrow
// to fill it. Samples are turned into such tiles on their way in (which settles padding, alignment and the last,
// incomplete block at once) and back on their way out. Nothing is allocated or kept here, so any number of threads may
// call at once, each with its own scratch memory.

#include "network.h"

using namespace ostraka;

namespace {

// The adversarial steps. Mirrored by `Attack` in library.py.
struct Attack {
    int32_t target, steps;  // the class whose cross-entropy is climbed; how often
    Step step;
    float w_start, w_end;   // weights of the cross-entropy before and after all steps
};

// Calls f(number of the block, its first sample, samples in it).
template <class F>
void blocks(int batch, F f) {
    for (int first = 0; first < batch; first += LANES) f(first / LANES, first, batch - first < LANES ? batch - first : LANES);
}

size_t bytes_of_values(const Network& net) {
    Arena arena(nullptr);
    Values(arena, net);
    return arena.used;
}

// The error of LANES answers, ready for the backward pass; returns their loss.
double make_error(const Network& net, const Values& v, const Slopes& slopes, int target, int lanes, float scale) {
    const int outputs = net.last().out;
    memcpy(static_cast<void*>(slopes.behind[net.count].pixels), v.seen[net.count].pixels, outputs * sizeof(Vec));
    return cross_entropy(slopes.behind[net.count].pixels, outputs, target, lanes, scale);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Raised whenever a signature or a struct changes; the loader refuses another number.
int ostraka_interface() { return 3; }

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

// Bytes that a forward pass keeps of all samples for the backward pass. All memory must be aligned to 64.
size_t ostraka_kept(const Network* net) { return bytes_of_values(*net) * ((net->batch + LANES - 1) / LANES); }

// Bytes of scratch memory that any of the calls below may use.
size_t ostraka_scratch(const Network* net) {
    Arena arena(nullptr);
    Values(arena, *net);
    Filters(arena, *net);
    Slopes(arena, *net);
    return arena.used;
}

// x is [batch, values of a sample], y [batch, values that the last layer gives]. `kept` may be null when no gradient
// will be asked for.
void ostraka_forward(const Network* net, const float* x, const float* const* params, float* y, char* kept,
                     void* scratch) {
    Arena arena(scratch);
    const Values own(arena, *net);
    const Filters filters(arena, *net);
    const Parameters parameters{params};
    filters.fill(*net, parameters, true, false);
    const size_t each = bytes_of_values(*net);
    if (!kept) own.clear_borders(*net);
    blocks(net->batch, [&](int number, int first, int lanes) {
        Arena place(kept + number * each);
        const Values v = kept ? Values(place, *net) : own;
        if (kept) v.clear_borders(*net);
        copy_in(x + first * v.seen[0].size(), lanes, v.seen[0]);
        forward(*net, parameters, filters, v);
        copy_out(v.seen[net->count], lanes, y + first * v.seen[net->count].size());
    });
}

// From the gradient in y: the wanted gradients in the parameters, and, if grad_x is not null, in x.
void ostraka_backward(const Network* net, const float* const* params, char* kept, const float* grad_y,
                      float* const* grads, float* grad_x, void* scratch) {
    Arena arena(scratch);
    const Filters filters(arena, *net);
    const Slopes slopes(arena, *net);
    const Parameters parameters{params};
    const Gradients wanted{grads};
    filters.fill(*net, parameters, false, true);
    slopes.clear_all(*net, wanted);
    const size_t each = bytes_of_values(*net);
    blocks(net->batch, [&](int number, int first, int lanes) {
        Arena place(kept + number * each);
        const Values v(place, *net);
        const Tile &end = slopes.behind[net->count], &begin = slopes.behind[0];
        copy_in(grad_y + first * end.size(), lanes, end);
        backward(*net, parameters, filters, v, slopes, wanted, grad_x != nullptr, nullptr);
        if (grad_x) copy_out(begin, lanes, grad_x + first * begin.size());
    });
    slopes.finish(*net, wanted);
}

// The samples x after the steps of the attack, into `moved` (unless it is null). The result is
// w_start * mean cross-entropy of x + w_end * that of the moved samples, with the wanted gradients of this sum.
double ostraka_attack(const Network* net, const Attack* attack, const float* x, const float* const* params,
                      float* const* grads, float* moved, void* scratch) {
    Arena arena(scratch);
    const Values v(arena, *net);
    const Filters filters(arena, *net);
    const Slopes slopes(arena, *net);
    const Parameters parameters{params};
    const Gradients wanted{grads}, none{nullptr};
    filters.fill(*net, parameters, true, true);
    slopes.clear_all(*net, wanted);
    v.clear_borders(*net);
    const auto pass = [&](int lanes, float weight, const Step* step) {
        const float scale = weight > 0 ? weight / float(net->batch) : 1.0f;
        forward(*net, parameters, filters, v);
        const double loss = make_error(*net, v, slopes, attack->target, lanes, scale);
        backward(*net, parameters, filters, v, slopes, weight > 0 ? wanted : none, step != nullptr, step);
        return weight > 0 ? double(scale) * loss : 0.0;
    };
    double loss = 0;
    blocks(net->batch, [&](int, int first, int lanes) {
        copy_in(x + first * v.seen[0].size(), lanes, v.seen[0]);
        if (attack->w_start > 0 && attack->steps == 0) loss += pass(lanes, attack->w_start, nullptr);
        for (int i = 0; i < attack->steps; i++) loss += pass(lanes, i == 0 ? attack->w_start : 0.0f, &attack->step);
        if (moved) copy_out(v.seen[0], lanes, moved + first * v.seen[0].size());
        if (attack->w_end > 0) loss += pass(lanes, attack->w_end, nullptr);
    });
    slopes.finish(*net, wanted);
    return loss;
}
}
#pragma GCC visibility pop
