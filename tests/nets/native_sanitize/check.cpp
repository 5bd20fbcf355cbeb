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
    void* data;
    explicit Scratch(const Shape& s) {
        const size_t bytes = ostraka_scratch(&s);
        data = aligned_alloc(64, bytes);
        memset(data, 0xff, bytes);
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

// Everything the kernel computes, by definition.
struct Plain {
    Shape s;
    int rows, cols, out_rows, out_cols;
    std::vector<double> conv, y, gx, gw, gb;
    explicit Plain(const Shape& s)
        : s(s), rows(s.rows()), cols(s.cols()), out_rows(s.pool ? rows / 2 : rows), out_cols(s.pool ? cols / 2 : cols),
          conv(size_t(s.out) * rows * cols * s.batch), y(size_t(s.out) * out_rows * out_cols * s.batch),
          gx(size_t(s.in) * s.height * s.width * s.batch), gw(size_t(s.out) * s.in * s.kernel * s.kernel), gb(s.out) {}

    size_t at(int c, int r, int x, int height, int width, int n) const {
        return ((size_t(c) * height + r) * width + x) * s.batch + n;
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
                            for (int n = 0; n < s.batch; n++)
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
                    for (int n = 0; n < s.batch; n++) {
                        size_t best = s.pool ? at(o, 2 * r, 2 * c, rows, cols, n) : at(o, r, c, rows, cols, n);
                        for (int k = 1; s.pool && k < 4; k++) {
                            const size_t other = at(o, 2 * r + k / 2, 2 * c + k % 2, rows, cols, n);
                            if (conv[other] > conv[best]) best = other;
                        }
                        f(o, at(o, r, c, out_rows, out_cols, n), best);
                    }
    }

    void run(const float* x, const float* w, const float* b, const float* g) {
        const size_t plane = size_t(rows) * cols * s.batch;
        for (size_t i = 0; i < conv.size(); i++) conv[i] = b ? b[i / plane] : 0.0;
        products([&](size_t i, size_t k, size_t o) { conv[o] += double(x[i]) * w[k]; });
        std::vector<double> d(conv.size());
        outputs([&](int o, size_t to, size_t from) {
            const bool dead = s.relu && conv[from] <= 0;
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

bool fails(const Shape& s) {
    Plain plain(s);
    Exact<float> x(plain.gx.size()), w(plain.gw.size()), b(s.out), g(plain.y.size());
    Exact<float> y(plain.y.size()), gx(plain.gx.size()), gw(plain.gw.size()), gb(s.out);
    Exact<int8_t> picks(plain.y.size());
    x.fill(), w.fill(), b.fill(), g.fill();
    Exact<float> given(x.size);  // x in the order the kernel is told to expect
    const size_t pixels = s.batch ? x.size / s.batch : 0;
    for (size_t i = 0; i < x.size; i++)
        given.data[s.outermost ? i % s.batch * pixels + i / s.batch : i] = x.data[i];
    const float* bias = below(4) ? b.data : nullptr;
    plain.run(x.data, w.data, bias, g.data);
    int8_t* kept = s.pool ? picks.data : nullptr;
    auto forward = [&](int8_t* to) {
        Scratch scratch(s);
        return ostraka_forward(&s, given.data, w.data, bias, y.data, to, scratch.data) || differs("y", y, plain.y);
    };
    bool bad = forward(kept);
    // Each gradient alone (with null for whatever it does not need), then all together.
    const float* seen = s.relu && !s.pool ? y.data : nullptr;
    auto backward = [&](const float* image, float* to_x, float* to_w, float* to_b) {
        Scratch scratch(s);
        bad |= ostraka_backward(&s, image, w.data, seen, kept, g.data, to_x, to_w, to_b, scratch.data) != 0;
    };
    backward(nullptr, gx.data, nullptr, nullptr);
    backward(given.data, nullptr, gw.data, nullptr);
    backward(nullptr, nullptr, nullptr, gb.data);
    for (int pass = 0; pass < 2; pass++) {
        bad |= differs("grad_x", gx, plain.gx) || differs("grad_w", gw, plain.gw) || differs("grad_b", gb, plain.gb);
        if (!pass) {
            gx.fill(), gw.fill(), gb.fill();
            backward(given.data, gx.data, gw.data, gb.data);
        }
    }
    if (s.pool) bad |= forward(nullptr);
    if (bad)
        printf("batch %d, %d -> %d channels, %dx%d, kernel %d, padding %d, relu %d, pool %d, outermost %d\n", s.batch, s.in, s.out,
               s.height, s.width, s.kernel, s.padding, s.relu, s.pool, s.outermost);
    return bad;
}

}  // namespace

int main(int argc, char**) {
    if (argc > 1) {  // run.sh asks the baseline build what this processor can run
        printf("%d\n", ostraka_cpu_level());
        return 0;
    }
    const int batches[] = {1, 2, 15, 16, 17, 33, 64}, shapes = 400;
    int failed = 0;
    for (int i = 0; i < shapes; i++) {
        Shape s{};
        s.kernel = below(2) ? 5 : 3;
        s.batch = batches[below(7)], s.in = 1 + below(8), s.out = 1 + below(17);
        s.padding = below(3) ? (below(2) ? s.kernel / 2 : 0) : below(s.kernel);
        s.relu = below(2), s.pool = below(2), s.outermost = below(2);
        const int least = s.kernel - 2 * s.padding + s.pool;
        s.height = (least > 1 ? least : 1) + below(21), s.width = (least > 1 ? least : 1) + below(21);
        failed += fails(s);
    }
    const Shape none{0, 1, 1, 8, 8, 3, 0, 1, 1, 0}, strange{1, 1, 1, 8, 8, 7, 0, 1, 1, 0};
    failed += fails(none);
    failed += ostraka_forward(&strange, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) != 1;
    printf("%d lanes: %d of %d shapes failed\n", LANES, failed, shapes);
    return failed ? 1 : 0;
}
