#pragma once

// The packed16 ops written a second time, in double precision and with nothing shared with the fast ones: no quantiser, no
// tiles, no online softmax. It runs where the CPU backend is told to be the reference (ggml_backend_cpu_set_use_ref), that
// is, when test-backend-ops judges another backend, or the CPU's own fast path.

#include "ggml-cpu-impl.h"
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

// f >= 0 rounded to the nearest f16 number, ties to even, as a double; infinity beyond 65504
static double packed16_ref_round_f16(double f) {
    if (f == 0.0 || std::isnan(f)) {
        return f;
    }
    const double quantum = std::ldexp(1.0, std::max(std::ilogb(f), -14) - 10);
    const double rounded = std::nearbyint(f/quantum)*quantum;
    return rounded > 65504.0 ? INFINITY : rounded;
}

static uint16_t packed16_ref_f16_bits(double f) {
    if (f < std::ldexp(1.0, -14)) {
        return (uint16_t) std::ldexp(f, 24);
    }
    const int exponent = std::ilogb(f);
    return (uint16_t) ((exponent + 14)*1024 + (int) std::ldexp(f, 10 - exponent)); // the leading one adds 1 to the exponent
}

static void packed16_ref_round(const float * x, double scale, int * q) {
    const volatile float r = scale == 0.0 ? 0.0f : (float) (1.0/scale);
    for (int i = 0; i < 32; i++) {
        const volatile float product = (float) ((double) x[i]*(double) r);
        q[i] = (int) std::fmax(-127.0, std::fmin(127.0, std::nearbyint((double) product)));
    }
}

// returns the scale, NaN for a block that cannot be represented
static double packed16_ref_quantize(const float * x, bool mse, int * q) {
    double amax   = 0.0;
    bool   finite = true;
    for (int i = 0; i < 32; i++) {
        finite = finite && std::isfinite(x[i]);
        amax   = std::fmax(amax, std::fabs((double) x[i]));
    }

    double scale = packed16_ref_round_f16((float) (amax/127.0));
    if (finite && std::isfinite(scale)) {
        packed16_ref_round(x, scale, q);
        if (mse) {
            volatile float xq = 0.0f;
            double         qq = 0.0;
            for (int i = 0; i < 32; i++) {
                const volatile float product = (float) ((double) x[i]*q[i]);
                xq  = (float) ((double) xq + (double) product);
                qq += q[i]*q[i];
            }
            scale = packed16_ref_round_f16(qq == 0.0 ? 0.0 : (double) (float) ((double) xq/qq));
            if (std::isfinite(scale)) {
                packed16_ref_round(x, scale, q);
            }
        }
        if (std::isfinite(scale)) {
            return scale;
        }
    }

    for (int i = 0; i < 32; i++) {
        q[i] = 0;
    }
    return NAN;
}

static void packed16_ref_pack(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * k_cur     = dst->src[0];
    const ggml_tensor * k_idxs    = dst->src[1];
    const ggml_tensor * k_payload = dst->src[2];
    const ggml_tensor * k_scales  = dst->src[3];

    const bool mse = ggml_get_op_params_i32(dst, 0) == GGML_PACKED16_SCALE_MSE;

    for (int64_t row = params->ith; row < k_cur->ne[1]; row += params->nth) {
        const int64_t cell   = ((const int64_t *) k_idxs->data)[row];
        const int64_t stream = cell/k_payload->ne[1];
        const int64_t index  = cell%k_payload->ne[1];

        GGML_ASSERT(cell >= 0 && stream < k_payload->ne[2]);

        for (int64_t b = 0; b < k_cur->ne[0]/32; b++) {
            float x[32];
            for (int i = 0; i < 32; i++) {
                const char * p = (const char *) k_cur->data + row*k_cur->nb[1] + (32*b + i)*k_cur->nb[0];
                x[i] = k_cur->type == GGML_TYPE_F32 ? *(const float *) p : ggml_fp16_to_fp32(*(const ggml_fp16_t *) p);
            }

            int          q[32];
            const double scale = packed16_ref_quantize(x, mse, q);

            char * payload = (char *) k_payload->data + index*k_payload->nb[1] + stream*k_payload->nb[2];
            char * scales  = (char *) k_scales->data  + index*k_scales->nb[1]  + stream*k_scales->nb[2];
            for (int w = 0; w < 8; w++) {
                uint32_t word = 0;
                for (int j = 3; j >= 0; j--) {
                    word = word << 8 | (uint32_t) (q[4*w + j] & 0xFF);
                }
                memcpy(payload + (8*b + w)*sizeof(word), &word, sizeof(word));
            }
            const uint16_t bits = std::isnan(scale) ? 0x7E00 : packed16_ref_f16_bits(scale);
            memcpy(scales + b*sizeof(bits), &bits, sizeof(bits));
        }
    }
}

// one output row: query row iq of head ih in sequence i3
static void packed16_ref_attention_row(const ggml_tensor * dst, int64_t i3, int64_t ih, int64_t iq) {
    const ggml_tensor * q      = dst->src[0];
    const ggml_tensor * k      = dst->src[1];
    const ggml_tensor * v      = dst->src[2];
    const ggml_tensor * mask   = dst->src[3];
    const ggml_tensor * sinks  = dst->src[4];
    const ggml_tensor * scales = dst->src[5];

    const int64_t D   = q->ne[0];
    const int64_t nk  = k->ne[1];
    const int64_t ikv = ih/(q->ne[2]/k->ne[2]);
    const double  scale = ggml_get_op_params_f32(dst, 0);

    std::vector<double> query(D);
    const float * pq = (const float *) ((const char *) q->data + iq*q->nb[1] + ih*q->nb[2] + i3*q->nb[3]);
    for (int64_t b = 0; b < D/32; b++) {
        float amax = 0.0f;
        bool  finite = true;
        for (int i = 0; i < 32; i++) {
            finite = finite && std::isfinite(pq[32*b + i]);
            amax   = std::fmax(amax, std::fabs(pq[32*b + i]));
        }
        const float s = !finite ? NAN : amax/127.0f < 0x1p-126f ? 0.0f : amax/127.0f;
        const float r = s == 0.0f ? 0.0f : 1.0f/s;
        for (int i = 0; i < 32; i++) {
            query[32*b + i] = !finite ? NAN : (double) s*std::nearbyint(pq[32*b + i]*r);
        }
    }

    std::vector<double> score(nk, -INFINITY);
    double max = -INFINITY;
    for (int64_t c = 0; c < nk; c++) {
        double bias = 0.0;
        if (mask) {
            const char * pm = (const char *) mask->data + c*mask->nb[0] + iq*mask->nb[1] + (ih%mask->ne[2])*mask->nb[2] + (i3%mask->ne[3])*mask->nb[3];
            bias = ggml_fp16_to_fp32(*(const ggml_fp16_t *) pm);
        }
        if (bias == -INFINITY) {
            continue;
        }
        const char        * pk = (const char *) k->data + c*k->nb[1] + ikv*k->nb[2] + i3*k->nb[3];
        const ggml_fp16_t * ps = (const ggml_fp16_t *) ((const char *) scales->data + c*scales->nb[1] + ikv*scales->nb[2] + i3*scales->nb[3]);
        double dot = 0.0;
        for (int64_t d = 0; d < D; d++) {
            uint32_t word;
            memcpy(&word, pk + d/4*sizeof(word), sizeof(word));
            dot += query[d]*(int8_t) (word >> 8*(d%4))*ggml_fp16_to_fp32(ps[d/32]);
        }
        score[c] = dot*scale + bias;
        max      = std::isnan(score[c]) || score[c] > max ? score[c] : max;
    }

    const double sink = sinks ? ((const float *) sinks->data)[ih] : -INFINITY;
    max = sink > max ? sink : max;

    std::vector<double> out(D, 0.0);
    std::vector<float>  row(D);
    double sum = sinks ? std::exp(sink - max) : 0.0;
    for (int64_t c = 0; c < nk; c++) {
        if (score[c] == -INFINITY) {
            continue; // masked: whatever V holds there is not read
        }
        const double p  = std::exp(score[c] - max);
        const char * pv = (const char *) v->data + c*v->nb[1] + ikv*v->nb[2] + i3*v->nb[3];
        ggml_get_type_traits(v->type)->to_float(pv, row.data(), D);
        for (int64_t d = 0; d < D; d++) {
            out[d] += p*row[d];
        }
        sum += p;
    }

    float * po = (float *) ((char *) dst->data + ih*dst->nb[1] + iq*dst->nb[2] + i3*dst->nb[3]);
    for (int64_t d = 0; d < D; d++) {
        po[d] = sum == 0.0 ? 0.0f : (float) (out[d]/sum);
    }
}

static void packed16_ref_attention(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * q = dst->src[0];

    for (int64_t i = params->ith; i < q->ne[1]*q->ne[2]*q->ne[3]; i += params->nth) {
        const int64_t iq = i%q->ne[1];
        const int64_t ih = i/q->ne[1]%q->ne[2];
        const int64_t i3 = i/q->ne[1]/q->ne[2];
        packed16_ref_attention_row(dst, i3, ih, iq);
    }
}
