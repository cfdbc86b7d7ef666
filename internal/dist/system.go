package dist

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

// System is a library that the archive leaves to the system.
type System struct {
	Name string   `json:"name"`
	From string   `json:"from"` // who provides it
	By   []string `json:"by"`   // what needs it
}

// providers are the libraries that a system is expected to have, by who brings
// them: what every Linux has, and what the GPU's runtime is. Bundling those
// would be wrong, since they belong to the kernel's driver.
var providers = []struct {
	from     string
	backend  recipe.Backend // only for this backend; "" for all
	required bool           // a build for the backend that needs none of them is none
	names    *regexp.Regexp
}{
	{"the C library", "", false, regexp.MustCompile(`^(ld-linux[a-z0-9_-]*|ld64|libc|libm|libmvec|libdl|libpthread|librt)\.so\.[0-9]+$|^(ld|libc\.)-?musl-[a-z0-9_]+\.so\.1$`)},
	{"the compiler's runtime", "", false, regexp.MustCompile(`^(libgcc_s|libstdc\+\+|libc\+\+|libc\+\+abi|libunwind|libgomp|libomp|libatomic)\.so(\.[0-9]+)?$`)},
	{"ROCm", recipe.HIP, true, regexp.MustCompile(`^lib(amdhip64|hipblas|hipblaslt|rocblas|rocsolver|rccl|hsa-runtime64|amd_comgr|hiprtc)\.so\.[0-9]+$`)},
	{"the CUDA toolkit or its runtime package", recipe.CUDA, true, regexp.MustCompile(`^lib(cudart|cublas|cublasLt|nccl|nvrtc)\.so\.[0-9]+$`)},
	{"the NVIDIA driver", recipe.CUDA, false, regexp.MustCompile(`^libcuda\.so\.1$`)},
}

// judge names who provides each library that is needed and not bundled. One
// that nobody is known to provide is an error, unless the user named it. A
// build for a GPU that needs nothing of the GPU's runtime is one for the CPU.
func judge(outside map[string][]string, backend recipe.Backend, named []string) ([]System, error) {
	var out []System
	var unknown []string
	found := map[string]bool{}
	for name, by := range outside {
		sort.Strings(by)
		from := ""
		for _, p := range providers {
			if (p.backend == "" || p.backend == backend) && p.names.MatchString(name) {
				from = p.from
			}
		}
		if from == "" && slices.Contains(named, name) {
			from = "the system, as named by --system"
		}
		if from == "" {
			unknown = append(unknown, fmt.Sprintf("%s (needed by %s)", name, strings.Join(by, ", ")))
			continue
		}
		found[from] = true
		out = append(out, System{name, from, by})
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		return nil, fault.New(fault.VerifyFailed, "neither in the build nor expected from the system: %s", strings.Join(unknown, "; ")).
			Hintf("build without it (a cmake entry in the recipe), or name it with --system when whoever unpacks the archive has it")
	}
	for _, p := range providers {
		if p.required && p.backend == backend && !found[p.from] {
			return nil, fault.New(fault.VerifyFailed, "the recipe is for %s, and nothing that was built needs a library of %s", backend, p.from).
				Hintf("it is a build for the CPU: look into the configure log for why the GPU's backend was left out")
		}
	}
	for _, n := range named {
		if outside[n] == nil {
			return nil, fault.New(fault.Usage, "--system %s: nothing needs it from the system", n).Hintf("leave it out")
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// requires is the text that tells whoever unpacks the archive what it takes.
func requires(system []System, versions []string, backend recipe.Backend, native bool) []byte {
	var b strings.Builder
	b.WriteString("What the programs need from the system:\n\n")
	for _, s := range system {
		fmt.Fprintf(&b, "  %-26s %s\n", s.Name, s.From)
	}
	if len(versions) > 0 {
		fmt.Fprintf(&b, "\nwith at least these symbol versions: %s\n", strings.Join(versions, ", "))
	}
	if backend == recipe.HIP {
		b.WriteString("\nWhere the loader does not find ROCm's libraries by itself, name their directory:\n\n  LD_LIBRARY_PATH=/opt/rocm/lib bin/llama-server …\n")
	}
	if native {
		b.WriteString("\nThe programs were compiled for the CPU of the machine that built them (GGML_NATIVE) and stop with an illegal\n" +
			"instruction on one that lacks some of its instructions.\n")
	}
	b.WriteString("\nEverything else lies beside the programs, which find it wherever the directory is.\n")
	return []byte(b.String())
}
