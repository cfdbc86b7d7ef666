package isa

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func isDot4(op string) bool {
	return strings.HasPrefix(op, "v_dot4_i32_iu8") || strings.HasPrefix(op, "v_dot4_i32_i8")
}

// Instruction classes.
const (
	classDot4   = "dot4"
	classWMMA   = "wmma"
	classFMA    = "fma"   // f32 multiply-add, multiply, add
	classTrans  = "trans" // exp, log, rcp, sqrt: quarter rate
	classValu   = "valu"  // every other vector instruction
	classSalu   = "salu"
	classLDS    = "lds"
	classVMem   = "vmem"
	classSMem   = "smem"
	classWait   = "wait" // waits, hints, barriers
	classBranch = "branch"
)

func class(op string) string {
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(op, p) })
	}
	switch {
	case isDot4(op):
		return classDot4
	case has("v_wmma_", "v_swmmac_"):
		return classWMMA
	case has("v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"):
		return classTrans
	case has("v_fma", "v_dual_fma", "v_mul_f32", "v_dual_mul_f32", "v_add_f32", "v_dual_add_f32", "v_sub_f32", "v_dual_sub", "v_pk_fma", "v_dot2"):
		return classFMA
	case has("v_"):
		return classValu
	case has("ds_"):
		return classLDS
	case has("global_", "buffer_", "flat_", "scratch_"):
		return classVMem
	case has("s_load_", "s_buffer_load_"):
		return classSMem
	case has("s_branch", "s_cbranch", "s_endpgm", "s_setpc", "s_call"):
		return classBranch
	case has("s_wait", "s_delay_alu", "s_nop", "s_clause", "s_barrier", "buffer_gl", "s_sendmsg", "s_sleep"):
		return classWait
	}
	return classSalu
}

var loadOp = regexp.MustCompile(`^(global|buffer|flat|scratch|ds|s|s_buffer)_load_(?:d16_(?:hi_)?)?[a-z]*?(\d+)$|^(ds)_load_2addr(?:_stride64)?_b(\d+)$`)

// loadWidth says where a load reads from (global, lds, scalar, scratch) and how many bits a lane gets from one access.
func loadWidth(op string) (space string, bits int, ok bool) {
	m := loadOp.FindStringSubmatch(op)
	if m == nil {
		return "", 0, false
	}
	if m[3] != "" {
		bits, _ = strconv.Atoi(m[4])
		return "lds", 2 * bits, true
	}
	bits, _ = strconv.Atoi(m[2])
	switch m[1] {
	case "ds":
		return "lds", bits, true
	case "s", "s_buffer":
		return "scalar", bits, true
	case "scratch":
		return "scratch", bits, true
	}
	return "global", bits, true
}
