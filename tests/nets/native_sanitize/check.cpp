// Runs the kernel over many shapes against plain loops in double precision. Built by run.sh with the address and
// undefined-behaviour sanitizers; every buffer is exactly as large as it must be, so one step too far is caught.
// The data are small whole numbers, for which float32 is exact: results must be equal, not merely close.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../../../src/ostraka/nets/native/kernel.cpp"

namespace {

uint32_t state = 1;
int below(int n) {
    state = state * 1664525u + 1013904223u;
    return int((state >> 8) % uint32_t(n));
}

template <class T>
struct Exact {  // heap memory of exactly this size; std::vector may hold spare room
    T* data;
    size_t size;
    explicit Exact(size_t size) : data(static_cast<T*>(malloc(size * sizeof(T)))), size(size) {}
    Exact(const Exact&) = delete;
    ~Exact() { free(data); }
    void fill() {
        for (size_t i = 0; i < size; i++) data[i] = T(below(7) - 3);
    }
};

// New for every call and full of NaN: nothing may be read before it is written.
struct Scratch {
    char* data;
    explicit Scratch(size_t bytes) {
        data = static_cast<char*>(aligned_alloc(64, bytes + 64));
        memset(static_cast<void*>(data), 0xff, bytes);
    }
    Scratch(const Scratch&) = delete;
    ~Scratch() { free(data); }
};

bool differs(const char* what, const Exact<float>& ours, const std::vector<double>& theirs) {
    for (size_t i = 0; i < ours.size; i++)
        if (double(ours.data[i]) != theirs[i]) {
            printf("%s[%zu] is %g, expected %g\n", what, i, double(ours.data[i]), theirs[i]);
            return true;
        }
    return false;
}

// Everything the kernel computes of one convolution with ReLU and max-pool, by definition.
struct Plain {
    Layer s;
    int batch;
    int rows, cols, out_rows, out_cols;
    std::vector<double> conv, y, gx, gw, gb;
    Plain(const Layer& s, int batch)
        : s(s), batch(batch), rows(s.rows()), cols(s.cols()), out_rows(s.pool ? rows / 2 : rows), out_cols(s.pool ? cols / 2 : cols),
          conv(size_t(s.out) * rows * cols * batch), y(size_t(s.out) * out_rows * out_cols * batch),
          gx(size_t(s.in) * s.height * s.width * batch), gw(size_t(s.out) * s.in * s.kernel * s.kernel), gb(s.out) {}

    size_t at(int c, int r, int x, int height, int width, int n) const {
        return ((size_t(c) * height + r) * width + x) * batch + n;
    }

    // Calls f(input index, weight index, convolution index) for every product of the convolution.
    template <class F>
    void products(F f) const {
        for (int o = 0; o < s.out; o++)
            for (int i = 0; i < s.in; i++)
                for (int k = 0; k < s.kernel * s.kernel; k++)
                    for (int r = 0; r < rows; r++)
                        for (int c = 0; c < cols; c++) {
                            const int iy = r + k / s.kernel - s.padding, ix = c + k % s.kernel - s.padding;
                            if (iy < 0 || ix < 0 || iy >= s.height || ix >= s.width) continue;
                            for (int n = 0; n < batch; n++)
                                f(at(i, iy, ix, s.height, s.width, n), (size_t(o) * s.in + i) * s.kernel * s.kernel + k,
                                  at(o, r, c, rows, cols, n));
                        }
    }

    // Calls f(output index, winning convolution index) for every output.
    template <class F>
    void outputs(F f) const {
        for (int o = 0; o < s.out; o++)
            for (int r = 0; r < out_rows; r++)
                for (int c = 0; c < out_cols; c++)
                    for (int n = 0; n < batch; n++) {
                        size_t best = s.pool ? at(o, 2 * r, 2 * c, rows, cols, n) : at(o, r, c, rows, cols, n);
                        for (int k = 1; s.pool && k < 4; k++) {
                            const size_t other = at(o, 2 * r + k / 2, 2 * c + k % 2, rows, cols, n);
                            if (conv[other] > conv[best]) best = other;
                        }
                        f(o, at(o, r, c, out_rows, out_cols, n), best);
                    }
    }

    void run(const float* x, const float* w, const float* b, const float* g) {
        const size_t plane = size_t(rows) * cols * batch;
        for (size_t i = 0; i < conv.size(); i++) conv[i] = b ? b[i / plane] : 0.0;
        products([&](size_t i, size_t k, size_t o) { conv[o] += double(x[i]) * w[k]; });
        std::vector<double> d(conv.size());
        outputs([&](int o, size_t to, size_t from) {
            const bool dead = s.activation == RELU && conv[from] <= 0;
            y[to] = dead ? 0 : conv[from];
            d[from] = dead ? 0 : g[to];
            gb[o] += d[from];
        });
        products([&](size_t i, size_t k, size_t o) {
            gx[i] += d[o] * w[k];
            gw[k] += d[o] * x[i];
        });
    }
};

// [value, sample] to [sample, value] and back.
void turn(const Exact<float>& from, Exact<float>& to, int batch, bool back) {
    const size_t each = batch ? from.size / batch : 0;
    for (size_t i = 0; i < from.size; i++) {
        const size_t other = i % batch * each + i / batch;
        to.data[back ? i : other] = from.data[back ? other : i];
    }
}

bool fails(const Layer& s, int batch) {
    Network net{};
    net.batch = batch, net.count = 1, net.layers[0] = s;
    Plain plain(s, batch);
    Exact<float> x(plain.gx.size()), w(plain.gw.size()), b(s.out), g(plain.y.size());
    Exact<float> y(plain.y.size()), gx(plain.gx.size()), gw(plain.gw.size()), gb(s.out);
    Exact<float> given(x.size), grad(g.size), out(y.size), out_x(x.size);
    x.fill(), w.fill(), b.fill(), g.fill();
    if (batch) turn(x, given, batch, false), turn(g, grad, batch, false);
    const float* params[] = {w.data, below(4) ? b.data : nullptr};
    plain.run(x.data, w.data, params[1], g.data);
    bool bad = false;
    Scratch kept(ostraka_kept(&net));
    for (char* keep : {static_cast<char*>(nullptr), kept.data}) {
        Scratch scratch(ostraka_scratch(&net));
        ostraka_forward(&net, given.data, params, out.data, keep, scratch.data);
        if (batch) turn(out, y, batch, true);
        bad |= differs("y", y, plain.y);
    }
    // Each gradient alone, then all together.
    for (int wanted : {1, 2, 4, 7}) {
        Scratch scratch(ostraka_scratch(&net));
        memset(gw.data, 0, gw.size * sizeof(float)), memset(gb.data, 0, gb.size * sizeof(float));
        float* grads[] = {wanted & 2 ? gw.data : nullptr, wanted & 4 ? gb.data : nullptr};
        ostraka_backward(&net, params, kept.data, grad.data, grads, wanted & 1 ? out_x.data : nullptr, scratch.data);
        if (batch && (wanted & 1)) turn(out_x, gx, batch, true);
        bad |= (wanted & 1) && differs("grad_x", gx, plain.gx);
        bad |= (wanted & 2) && differs("grad_w", gw, plain.gw);
        bad |= (wanted & 4) && differs("grad_b", gb, plain.gb);
    }
    if (bad)
        printf("batch %d, %d -> %d channels, %dx%d, kernel %d, padding %d, activation %d, pool %d\n", batch, s.in, s.out,
               s.height, s.width, s.kernel, s.padding, s.activation, s.pool);
    return bad;
}

// A whole network of any activations and poolings through every call. What is right is tested from Python; here: that
// memory is respected, and that one call gives the loss and the gradients that another one gives.
bool chain_fails() {
    Network net{};
    net.batch = 1 + below(35);
    int channels = 1 + below(3), height = 8 + below(9), width = 8 + below(9);
    const int samples = channels * height * width;
    for (int i = 0; i < 2; i++) {
        const int kernel = below(2) ? 3 : 5, pool = below(3);
        const Layer s{channels, 1 + below(9), height, width, kernel, below(kernel), Activation(below(3)), Pooling(pool)};
        if (s.rows() < 2 || s.cols() < 2) break;
        net.layers[net.count++] = s;
        channels = s.out, height = s.out_rows(), width = s.out_cols();
    }
    int units = channels * height * width;
    for (int i = 0; i < 2; i++) {
        const int out = 2 + below(40);
        net.layers[net.count++] = Layer{units, out, 1, 1, 0, 0, i ? IDENTITY : Activation(below(3)), NO_POOL};
        units = out;
    }
    std::vector<Exact<float>*> tensors, slopes;
    std::vector<const float*> params;
    std::vector<float*> grads;
    for (int i = 0; i < net.count; i++)
        for (size_t size : {size_t(net.layers[i].weights()), size_t(net.layers[i].out)}) {
            tensors.push_back(new Exact<float>(size)), slopes.push_back(new Exact<float>(size));
            for (size_t k = 0; k < size; k++) tensors.back()->data[k] = float(below(7) - 3) / 16, slopes.back()->data[k] = 0;
            params.push_back(tensors.back()->data), grads.push_back(slopes.back()->data);
        }
    Exact<float> x(size_t(samples) * net.batch), y(size_t(units) * net.batch), moved(x.size), grad_x(x.size);
    Exact<int64_t> labels(net.batch);
    x.fill();
    for (size_t i = 0; i < labels.size; i++) labels.data[i] = below(units);
    const auto scratched = [&](auto call) {
        Scratch scratch(ostraka_scratch(&net));
        return call(scratch.data);
    };
    const Lesson rest{0, 0, 0, 1.0f / float(net.batch)}, known{net.batch, 0.25f, 0.5f, 0};
    const Attack none{0, {0, 0, 0}, 1, 0}, attack{2, {0.125f, -2, 2}, 1, 1};
    bool bad = false;
    scratched([&](void* s) { return ostraka_forward(&net, x.data, params.data(), y.data, nullptr, s), 0; });
    const double one = scratched([&](void* s) {
        return ostraka_learn(&net, &rest, x.data, nullptr, params.data(), grads.data(), grad_x.data, s);
    });
    std::vector<std::vector<float>> before;
    for (Exact<float>* slope : slopes) {
        before.emplace_back(slope->data, slope->data + slope->size);
        memset(slope->data, 0, slope->size * sizeof(float));
    }
    const double other = scratched([&](void* s) {
        return ostraka_attack(&net, &none, x.data, params.data(), grads.data(), moved.data, s);
    });
    bad |= !(one == other);
    for (size_t i = 0; i < slopes.size(); i++)
        for (size_t k = 0; k < slopes[i]->size; k++) bad |= slopes[i]->data[k] != before[i][k];
    for (size_t i = 0; i < x.size; i++) bad |= moved.data[i] != x.data[i];
    const double third = scratched([&](void* s) {
        return ostraka_learn(&net, &known, x.data, labels.data, params.data(), grads.data(), nullptr, s);
    });
    const double last = scratched([&](void* s) {
        return ostraka_attack(&net, &attack, x.data, params.data(), grads.data(), moved.data, s);
    });
    bad |= !(third == third && last == last);
    for (size_t i = 0; i < x.size; i++) bad |= !(moved.data[i] >= -2 && moved.data[i] <= 2);
    for (size_t i = 0; i < tensors.size(); i++) delete tensors[i], delete slopes[i];
    if (bad) printf("a network of %d layers failed, batch %d\n", net.count, net.batch);
    return bad;
}

}  // namespace

int main(int argc, char**) {
    if (argc > 1) {  // run.sh asks the baseline build what this processor can run
        printf("%d\n", ostraka_cpu_level());
        return 0;
    }
    const int batches[] = {1, 2, 15, 16, 17, 33, 64}, shapes = 400, networks = 100;
    int failed = 0;
    for (int i = 0; i < shapes; i++) {
        Layer s{};
        s.kernel = below(2) ? 5 : 3;
        const int batch = batches[below(7)];
        s.in = 1 + below(8), s.out = 1 + below(17);
        s.padding = below(3) ? (below(2) ? s.kernel / 2 : 0) : below(s.kernel);
        s.activation = below(2) ? RELU : IDENTITY, s.pool = below(2) ? MAX_POOL : NO_POOL;
        const int least = s.kernel - 2 * s.padding + (s.pool != NO_POOL);
        s.height = (least > 1 ? least : 1) + below(21), s.width = (least > 1 ? least : 1) + below(21);
        failed += fails(s, batch);
    }
    failed += fails({1, 1, 8, 8, 3, 0, RELU, MAX_POOL}, 0);
    for (int i = 0; i < networks; i++) failed += chain_fails();
    printf("%d lanes: %d of %d shapes and networks failed\n", LANES, failed, shapes + networks);
    return failed ? 1 : 0;
}
