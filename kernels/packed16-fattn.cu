#include "packed16-fattn.cuh"
#include "packed16-launch.cuh"
#include "packed16-rules.h"

#define PACKED16_ENV_ABORT(text) GGML_ABORT("packed16: %s", text)
#define PACKED16_ENV_NOTE(text)  GGML_LOG_WARN("packed16: %s\n", text)
#include "packed16-routes.h"
#include "packed16-decode-plan.cuh"
#include "packed16-node.cuh"

#include "fattn.cuh"

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

size_t ggml_cuda_packed16_get_alloc_size(const int device, const ggml_tensor * dst) {
    const packed16_env &    env   = packed16_env_get();
    const packed16_shape    shape = packed16_shape_of(dst);
    const packed16_decision d     = packed16_decide(device, shape, env);
    if (d.route == PACKED16_ROUTE_REFUSED || d.route == PACKED16_ROUTE_UPSTREAM) {
        return shape.k == PACKED16_K_PACKED ? ggml_nbytes(dst) : 0;
    }

    const int  n_seq = dst->src[0]->ne[3];
    const bool f16_k = shape.k == PACKED16_K_F16;
    const packed16_decode_device dev = packed16_decode_device_of(device, shape);

    const packed16_args a = packed16_args_of(dst);
    size_t most = 0;
    if (d.variant == PACKED16_VARIANT_F16 || (a.nq > PACKED16_MAX_DECODE_NQ && packed16_unpacks(shape, env))) {
        packed16_args b = a; // fewer cells may be unpacked where these are not
        if (d.variant != PACKED16_VARIANT_F16) {
            b.nk = std::min<int>(b.nk, PACKED16_PREFILL_F16_BELOW(shape.d));
        }
        packed16_scratch scratch = { ggml_nbytes(dst) };
        packed16_place_unpacked(scratch, b, n_seq, shape);
        most = scratch.end;
    }
    if (a.nq > PACKED16_MAX_DECODE_NQ) {
        packed16_scratch scratch = { ggml_nbytes(dst) };
        packed16_place(scratch, a, n_seq, shape.d, true, f16_k,
            d.variant == PACKED16_VARIANT_MMA ? ggml_cuda_info().devices[device].nsm : 0);
        most = std::max(most, scratch.end);
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

// Upstream's attention on what was unpacked.
static void packed16_run_upstream(ggml_backend_cuda_context & ctx, const ggml_tensor * dst, const packed16_call & call) {
    const auto f16 = [&](const ggml_tensor * from, half * data) {
        ggml_tensor t = *from;
        t.type      = GGML_TYPE_F16;
        t.ne[0]     = dst->src[0]->ne[0];
        t.nb[0]     = sizeof(half);
        t.nb[1]     = t.nb[0]*t.ne[0];
        t.nb[2]     = t.nb[1]*t.ne[1];
        t.nb[3]     = t.nb[2]*t.ne[2];
        t.data      = data;
        t.view_src  = nullptr;
        t.view_offs = 0;
        return t;
    };
    ggml_tensor K     = f16(dst->src[1], call.unpacked_k);
    ggml_tensor V     = f16(dst->src[2], call.unpacked_v);
    ggml_tensor sinks = {};
    sinks.type  = GGML_TYPE_F32;
    sinks.data  = call.unpacked_sinks;
    sinks.ne[0] = call.args.n_head;
    sinks.nb[0] = sizeof(float);
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        sinks.ne[i] = 1;
        sinks.nb[i] = sinks.ne[0]*sizeof(float);
    }
    ggml_tensor out = *dst;
    out.src[1] = &K;
    out.src[2] = &V;
    out.src[4] = &sinks;
    out.src[5] = nullptr;
    ggml_cuda_flash_attn_ext(ctx, &out);
}

static void packed16_run(ggml_backend_cuda_context & ctx, const ggml_tensor * dst, const packed16_call & call) {
    const int     D      = dst->src[0]->ne[0];
    const auto    type_v = dst->src[2]->type;
    cudaStream_t  stream = ctx.stream();
    switch (type_v) {
        case GGML_TYPE_F16:  packed16_launch<packed16_v_f16> (call, D, stream); break;
        case GGML_TYPE_Q8_0: packed16_launch<packed16_v_q8_0>(call, D, stream); break;
        case GGML_TYPE_Q4_0: packed16_launch<packed16_v_q4_0>(call, D, stream); break;
        default:             GGML_ABORT("packed16: no kernel for V of type %s", ggml_type_name(type_v));
    }
    if (call.unpacked_k) {
        packed16_run_upstream(ctx, dst, call);
    }
}

// The time of one call at debug level. Waits for it, so never while a graph is captured.
static void packed16_run_timed(
        ggml_backend_cuda_context & ctx, const ggml_tensor * dst, const packed16_call & call, const packed16_decision & d) {
    cudaStream_t stream = ctx.stream();
#ifdef USE_CUDA_GRAPH
    cudaStreamCaptureStatus capture;
    CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
    if (capture != cudaStreamCaptureStatusNone) {
        packed16_run(ctx, dst, call);
        return;
    }
#endif // USE_CUDA_GRAPH
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start, stream));
    packed16_run(ctx, dst, call);
    CUDA_CHECK(cudaEventRecord(stop, stream));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float ms = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    GGML_LOG_DEBUG("%s: packed16 %s: nq %d nk %d heads %d/%d D %d V %s: %.1f us\n", GGML_CUDA_NAME, packed16_route_names[d.route],
        call.args.nq, call.args.nk, call.args.n_head, call.args.n_head_kv, (int) dst->src[0]->ne[0], ggml_type_name(dst->src[2]->type), 1000.0f*ms);
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
    call.args       = packed16_args_of(dst);
    call.n_seq      = Q->ne[3];
    call.prefill    = d.route == PACKED16_ROUTE_PREFILL;
    call.mma        = d.variant == PACKED16_VARIANT_MMA;
    call.nsm        = ggml_cuda_info().devices[ctx.device].nsm;
    call.smem_limit = ggml_cuda_info().devices[ctx.device].smpbo;
    call.f16_k      = shape.k == PACKED16_K_F16;

    call.assume_causal = env.on(PACKED16_FLAG_BLOCKFA_ASSUME_CAUSAL);
    call.scale_mode    = env.value[PACKED16_FLAG_K_SCALE_MODE];
    call.scale_log2    = ggml_get_op_params_f32(dst, 0)*PACKED16_LOG2E;

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
    const bool       unpack  = d.variant == PACKED16_VARIANT_F16;
    packed16_scratch scratch = { ggml_nbytes(dst) };
    const packed16_scratch_layout at = unpack ? packed16_place_unpacked(scratch, call.args, call.n_seq, shape) : packed16_place(
        scratch, call.args, call.n_seq, shape.d, call.prefill, call.f16_k, call.mma ? call.nsm : 0);
    GGML_ASSERT(scratch.end <= ggml_cuda_packed16_get_alloc_size(ctx.device, dst));

    char * base = (char *) dst->data;
    call.q_payload      = (int *)     (base + at.q_payload);
    call.q_scales       = (float *)   (base + at.q_scales);
    call.packed_payload =              base + at.packed_payload;
    call.packed_scales  =              base + at.packed_scales;
    call.parts          = (float *)   (base + at.parts);
    call.meta           = (float2 *)  (base + at.meta);
    call.ends           = (int2 *)    (base + at.ends);
    call.classes        = (uint8_t *) (base + at.classes);

    if (unpack) {
        call.unpacked_k     = (half *)  (base + at.unpacked_k);
        call.unpacked_v     = (half *)  (base + at.unpacked_v);
        call.unpacked_sinks = (float *) (base + at.unpacked_sinks);
    }
    if (env.on(PACKED16_FLAG_DECODE_TIMING)) {
        packed16_run_timed(ctx, dst, call, d);
    } else {
        packed16_run(ctx, dst, call);
    }
    return true;
}
