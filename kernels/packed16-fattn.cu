#include "packed16-fattn.cuh"
#include "packed16-launch.cuh"
#include "packed16-rules.h"

#define PACKED16_ENV_ABORT(text) GGML_ABORT("packed16: %s", text)
#define PACKED16_ENV_NOTE(text)  GGML_LOG_WARN("packed16: %s\n", text)
#include "packed16-routes.h"
#include "packed16-decode-plan.cuh"

#include <atomic>

#if defined(GGML_USE_HIP) // names that vendors/hip.h does not map
#define cudaEventCreate             hipEventCreate
#define cudaEventElapsedTime        hipEventElapsedTime
#define cudaStreamCaptureStatus     hipStreamCaptureStatus
#define cudaStreamCaptureStatusNone hipStreamCaptureStatusNone
#define cudaStreamIsCapturing       hipStreamIsCapturing
#endif // defined(GGML_USE_HIP)

void ggml_cuda_packed16_init() {
    packed16_env_get();
}

static bool packed16_aligned(const ggml_tensor * t, const size_t n) {
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        if (t->ne[i] > 1 && t->nb[i] % n != 0) {
            return false;
        }
    }
    return t->view_offs % n == 0;
}

// The most bytes, up to 16, that divide a row.
static size_t packed16_row_alignment(const ggml_tensor * t) {
    const size_t row = ggml_row_size(t->type, t->ne[0]);
    return row % 16 == 0 ? 16 : row % 8 == 0 ? 8 : row % 4 == 0 ? 4 : 2;
}

static packed16_v_kind packed16_kind_of_v(const ggml_type type) {
    switch (type) {
        case GGML_TYPE_F16:  return PACKED16_V_F16;
        case GGML_TYPE_Q8_0: return PACKED16_V_Q8_0;
        case GGML_TYPE_Q4_0: return PACKED16_V_Q4_0;
        default:             return PACKED16_V_OTHER;
    }
}

static packed16_shape packed16_shape_of(const ggml_tensor * dst) {
    const ggml_tensor * Q    = dst->src[0];
    const ggml_tensor * K    = dst->src[1];
    const ggml_tensor * V    = dst->src[2];
    const ggml_tensor * mask = dst->src[3];

    packed16_shape s = {};
    s.k   = K->type == GGML_TYPE_I32 ? PACKED16_K_PACKED : K->type == GGML_TYPE_F16 ? PACKED16_K_F16 : PACKED16_K_OTHER;
    s.v   = packed16_kind_of_v(V->type);
    s.nq  = Q->ne[1];
    s.nk  = K->ne[1];
    s.d   = Q->ne[0];
    s.dv  = V->ne[0];
    s.gqa = Q->ne[2] % K->ne[2] == 0 ? Q->ne[2]/K->ne[2] : 0;

    s.max_bias   = ggml_get_op_params_f32(dst, 1) != 0.0f;
    s.softcap    = ggml_get_op_params_f32(dst, 2) != 0.0f;
    s.other_mask = mask && (mask->type != GGML_TYPE_F16 || mask->ne[2] != 1 || mask->nb[0] != sizeof(ggml_fp16_t));

    // Q, K payload and V are copied up to 16 bytes at a time, as the rows of a head allow, K scales a row of a head at a time
    s.misaligned = !packed16_aligned(Q, 16) || !packed16_aligned(K, 16) || !packed16_aligned(V, packed16_row_alignment(V));
    if (s.k == PACKED16_K_PACKED) {
        s.misaligned = s.misaligned || !dst->src[5] || !packed16_aligned(dst->src[5], Q->ne[0]/16);
    }
    return s;
}

// The device runs the matrix-tile prefill.
static bool packed16_matrix_prefill(const int device) {
    const int cc = ggml_cuda_info().devices[device].cc;
#if defined(GGML_USE_HIP)
    return amd_wmma_available(cc);
#else
    return GGML_CUDA_CC_IS_NVIDIA(cc) && ggml_cuda_highest_compiled_arch(cc) >= GGML_CUDA_CC_AMPERE;
#endif // defined(GGML_USE_HIP)
}

static packed16_decision packed16_decide(const int device, packed16_shape shape, const packed16_env & env) {
    shape.matrix_cores = packed16_matrix_prefill(device);
    return packed16_route(shape, env);
}

// Scratch behind the result. One after the other, each on 128 bytes.
struct packed16_scratch {
    size_t end;

    size_t take(const size_t size) {
        const size_t at = GGML_PAD(end, 128);
        end = at + size;
        return at;
    }
};

struct packed16_scratch_layout {
    size_t q_payload, q_scales, packed_payload, packed_scales, parts, meta, classes;
};

static packed16_scratch_layout packed16_place(
        packed16_scratch & scratch, const packed16_args & a, const int n_seq, const int D, const bool prefill, const bool f16_k, const int nsm_mma) {
    packed16_scratch_layout at = {};
    // the prefill kernels read up to a tile past the last row
    const size_t n_rows = (size_t) n_seq*a.n_head*a.nq + (prefill ? std::max(PACKED16_BM, PACKED16_MMA_MAX_COLS) : 0);
    at.q_payload = scratch.take(n_rows*D);
    at.q_scales  = scratch.take(n_rows*(D/PACKED16_SCALE_BLOCK)*sizeof(float));
    if (f16_k) {
        const size_t n_cells = (size_t) n_seq*a.n_head_kv*a.nk;
        at.packed_payload = scratch.take(n_cells*D);
        at.packed_scales  = scratch.take(n_cells*(D/PACKED16_SCALE_BLOCK)*sizeof(half));
    }
    if (nsm_mma > 0) {
        const size_t n_parts = packed16_prefill_most_parts(a, n_seq, D, nsm_mma);
        at.classes = scratch.take(packed16_prefill_most_classes(a));
        at.parts   = scratch.take(n_parts*D*sizeof(float));
        at.meta    = scratch.take(n_parts*sizeof(float2));
    } else if (prefill) {
        at.classes = scratch.take((size_t) ((a.nk + PACKED16_BN - 1)/PACKED16_BN)*((a.nq + PACKED16_BM - 1)/PACKED16_BM)*a.n_mask3);
    } else {
        const size_t n_parts = (size_t) n_seq*a.n_head_kv*a.n_units*a.nq*a.gqa;
        at.parts = scratch.take(n_parts*D*sizeof(float));
        at.meta  = scratch.take(n_parts*sizeof(float2));
    }
    return at;
}

static packed16_args packed16_args_of(const ggml_tensor * dst) {
    const ggml_tensor * Q    = dst->src[0];
    const ggml_tensor * K    = dst->src[1];
    const ggml_tensor * V    = dst->src[2];
    const ggml_tensor * mask = dst->src[3];
    const ggml_tensor * S    = dst->src[5];

    packed16_args a = {};
    a.nk        = K->ne[1];
    a.nq        = Q->ne[1];
    a.n_head    = Q->ne[2];
    a.n_head_kv = K->ne[2];
    a.gqa       = Q->ne[2]/K->ne[2];
    a.n_mask3   = mask ? mask->ne[3] : 1;

    a.nbk1 = K->nb[1];
    a.nbk2 = K->nb[2];
    a.nbk3 = K->nb[3];
    a.nbv1 = V->nb[1];
    a.nbv2 = V->nb[2];
    a.nbv3 = V->nb[3];
    if (S && K->type == GGML_TYPE_I32) {
        a.nbs1 = S->nb[1];
        a.nbs2 = S->nb[2];
        a.nbs3 = S->nb[3];
    }
    if (mask) {
        a.nbm1 = mask->nb[1];
        a.nbm3 = mask->nb[3];
    }
    return a;
}

size_t ggml_cuda_packed16_get_alloc_size(const int device, const ggml_tensor * dst) {
    const packed16_env & env   = packed16_env_get();
    const packed16_shape shape = packed16_shape_of(dst);
    const packed16_decision d   = packed16_decide(device, shape, env);
    if (d.route == PACKED16_ROUTE_REFUSED || d.route == PACKED16_ROUTE_UPSTREAM) {
        return shape.k == PACKED16_K_PACKED ? ggml_nbytes(dst) : 0;
    }

    const int  n_seq = dst->src[0]->ne[3];
    const bool f16_k = shape.k == PACKED16_K_F16;
    const packed16_decode_device dev = packed16_decode_device_of(device, shape);

    const packed16_args a = packed16_args_of(dst);
    size_t most = 0;
    if (a.nq > PACKED16_MAX_DECODE_NQ) {
        packed16_scratch scratch = { ggml_nbytes(dst) };
        packed16_place(scratch, a, n_seq, shape.d, true, f16_k,
            d.variant == PACKED16_VARIANT_MMA ? ggml_cuda_info().devices[device].nsm : 0);
        most = scratch.end;
    }
    for (int nq = 1; nq <= std::min(a.nq, PACKED16_MAX_DECODE_NQ); ++nq) {
        packed16_args b = a;
        b.nq      = nq;
        b.n_units = packed16_most_units(b, env, n_seq, dev);
        packed16_scratch scratch = { ggml_nbytes(dst) };
        packed16_place(scratch, b, n_seq, shape.d, false, f16_k, 0);
        most = std::max(most, scratch.end);
    }
    return most;
}

// A line for each different reason, not for each call.
static void packed16_log_refusal(const ggml_tensor * op, const packed16_decision & d) {
    static std::atomic<uint32_t> seen = { 0 };
    const uint32_t bit = 1u << d.reason;
    if (!(seen.fetch_or(bit) & bit)) {
        GGML_LOG_WARN("%s: %s on %s\n", GGML_CUDA_NAME, packed16_why(d).c_str(), ggml_op_name(op->op));
    }
}

ggml_cuda_packed16_answer ggml_cuda_packed16_supports(const int device, const ggml_tensor * op) {
    if (op->op == GGML_OP_PACK_K_PACKED16) {
        return packed16_supported(op, GGML_CUDA_NAME) && packed16_aligned(op->src[0], 16) && packed16_aligned(op->src[2], 16) ?
            GGML_CUDA_PACKED16_SUPPORTED : GGML_CUDA_PACKED16_REFUSED;
    }
    if (!packed16_supported(op, GGML_CUDA_NAME)) {
        return GGML_CUDA_PACKED16_REFUSED;
    }
    const packed16_env &    env = packed16_env_get();
    const packed16_decision d   = packed16_decide(device, packed16_shape_of(op), env);
    switch (d.route) {
        case PACKED16_ROUTE_UPSTREAM:
            return GGML_CUDA_PACKED16_NOT_OURS;
        case PACKED16_ROUTE_REFUSED:
            if (op->src[1]->type != GGML_TYPE_I32) { // upstream has a kernel for it, which the user ruled out: the CPU is no answer
                GGML_ABORT("packed16: GGML_CUDA_FA_ROUTE_REQUIRE is set: %s", packed16_why(d).c_str());
            }
            packed16_log_refusal(op, d);
            return GGML_CUDA_PACKED16_REFUSED;
        default:
            break;
    }
    static std::atomic<bool> said = { false };
    if (!said.exchange(true)) {
        GGML_LOG_INFO("%s: packed16 attention: %s\n", GGML_CUDA_NAME, packed16_routes_line(env, packed16_matrix_prefill(device)).c_str());
    }
    return GGML_CUDA_PACKED16_SUPPORTED;
}

static void packed16_run(const packed16_call & call, const ggml_type type_v, const int D, cudaStream_t stream) {
    switch (type_v) {
        case GGML_TYPE_F16:  packed16_launch<packed16_v_f16> (call, D, stream); break;
        case GGML_TYPE_Q8_0: packed16_launch<packed16_v_q8_0>(call, D, stream); break;
        case GGML_TYPE_Q4_0: packed16_launch<packed16_v_q4_0>(call, D, stream); break;
        default:             GGML_ABORT("packed16: no kernel for V of type %s", ggml_type_name(type_v));
    }
}

// The time of one call at debug level. Waits for it, so never while a graph is captured.
static void packed16_run_timed(
        const packed16_call & call, const packed16_decision & d, const ggml_type type_v, const int D, cudaStream_t stream) {
#ifdef USE_CUDA_GRAPH
    cudaStreamCaptureStatus capture;
    CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
    if (capture != cudaStreamCaptureStatusNone) {
        packed16_run(call, type_v, D, stream);
        return;
    }
#endif // USE_CUDA_GRAPH
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start, stream));
    packed16_run(call, type_v, D, stream);
    CUDA_CHECK(cudaEventRecord(stop, stream));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float ms = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    GGML_LOG_DEBUG("%s: packed16 %s: nq %d nk %d heads %d/%d D %d V %s: %.1f us\n", GGML_CUDA_NAME, packed16_route_names[d.route],
        call.args.nq, call.args.nk, call.args.n_head, call.args.n_head_kv, D, ggml_type_name(type_v), 1000.0f*ms);
}

bool ggml_cuda_packed16_flash_attn_ext(ggml_backend_cuda_context & ctx, ggml_tensor * dst) {
    const ggml_tensor * Q     = dst->src[0];
    const ggml_tensor * K     = dst->src[1];
    const ggml_tensor * V     = dst->src[2];
    const ggml_tensor * mask  = dst->src[3];
    const ggml_tensor * sinks = dst->src[4];
    const ggml_tensor * S     = dst->src[5];

    const packed16_env &    env   = packed16_env_get();
    const packed16_shape    shape = packed16_shape_of(dst);
    const packed16_decision d     = packed16_decide(ctx.device, shape, env);
    if (d.route == PACKED16_ROUTE_UPSTREAM) {
        return false;
    }
    if (d.route == PACKED16_ROUTE_REFUSED) {
        GGML_ABORT("%s", packed16_why(d).c_str()); // supports_op said so before
    }

    ggml_cuda_set_device(ctx.device);

    packed16_call call = {};
    call.args    = packed16_args_of(dst);
    call.n_seq   = Q->ne[3];
    call.prefill = d.route == PACKED16_ROUTE_PREFILL;
    call.mma     = d.variant == PACKED16_VARIANT_MMA;
    call.nsm        = ggml_cuda_info().devices[ctx.device].nsm;
    call.smem_limit = ggml_cuda_info().devices[ctx.device].smpbo;
    call.f16_k   = shape.k == PACKED16_K_F16;

    call.assume_causal = env.on(PACKED16_FLAG_BLOCKFA_ASSUME_CAUSAL);
    call.scale_mode    = env.value[PACKED16_FLAG_K_SCALE_MODE];
    call.scale_log2    = ggml_get_op_params_f32(dst, 0)*1.44269504f;

    call.q    = (const char *) Q->data;
    call.nbq1 = Q->nb[1];
    call.nbq2 = Q->nb[2];
    call.nbq3 = Q->nb[3];
    call.k    = (const char *) K->data;
    call.nbf1 = K->nb[1];
    call.nbf2 = K->nb[2];
    call.nbf3 = K->nb[3];
    call.k_scales = call.f16_k ? nullptr : (const char *) S->data;
    call.v     = (const char *) V->data;
    call.mask  = mask  ? (const char *)  mask->data  : nullptr;
    call.sinks = sinks ? (const float *) sinks->data : nullptr;
    call.dst   = (float *) dst->data;

    if (!call.prefill) {
        const packed16_decode_device dev = packed16_decode_device_of(ctx.device, shape);
        const int columns = packed16_plan_decode(call.args, d.split, env.set[PACKED16_FLAG_DECODE_SPLITK_SIZE], call.n_seq, dev);
        call.matrix_decode = dev.matrix;
        call.columns       = dev.matrix ? columns : 0;
    }
    packed16_scratch scratch = { ggml_nbytes(dst) };
    const packed16_scratch_layout at = packed16_place(
        scratch, call.args, call.n_seq, shape.d, call.prefill, call.f16_k, call.mma ? call.nsm : 0);
    GGML_ASSERT(scratch.end <= ggml_cuda_packed16_get_alloc_size(ctx.device, dst));

    char * base = (char *) dst->data;
    call.q_payload      = (int *)     (base + at.q_payload);
    call.q_scales       = (float *)   (base + at.q_scales);
    call.packed_payload =              base + at.packed_payload;
    call.packed_scales  =              base + at.packed_scales;
    call.parts          = (float *)   (base + at.parts);
    call.meta           = (float2 *)  (base + at.meta);
    call.classes        = (uint8_t *) (base + at.classes);

    if (env.on(PACKED16_FLAG_DECODE_TIMING)) {
        packed16_run_timed(call, d, V->type, shape.d, ctx.stream());
    } else {
        packed16_run(call, V->type, shape.d, ctx.stream());
    }
    return true;
}
