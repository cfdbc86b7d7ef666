package build

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"dot4fa/internal/recipe"
)

// Memory one compile job of upstream takes at its worst, in MiB. Measured over a
// whole build of the rdna3 recipe at b10573 (gcc 12, clang 19, gfx1100): the
// heaviest unit is common/arg.cpp with 726 MiB, the heaviest device unit takes
// 365 MiB, and compilers hold one GPU target at a time; a third is added for
// other compilers. CUDA's was not measured.
var jobMiB = map[recipe.Backend]int{
	recipe.CPU:  1000,
	recipe.HIP:  1000,
	recipe.CUDA: 3000,
}

// Jobs is how many compile jobs run at once, and which bound decided.
type Jobs struct {
	N   int    `json:"n"`
	Why string `json:"why"`

	Cores int `json:"-"` // what the machine has
	Fit   int `json:"-"` // how many fit into free memory; -1 where that is not known
}

// ChooseJobs takes as many jobs as there are cores, but no more than fit into
// free memory. asked > 0 overrides both.
func ChooseJobs(backend recipe.Backend, asked int) Jobs {
	return chooseJobs(runtime.GOMAXPROCS(0), freeMiB(), jobMiB[backend], asked)
}

// chooseJobs does it for given numbers; free < 0 means not known.
func chooseJobs(cores, free, perJob, asked int) Jobs {
	if asked > 0 {
		return Jobs{N: asked, Why: "as asked", Cores: cores, Fit: -1}
	}
	if free < 0 {
		return Jobs{max(cores, 1), fmt.Sprintf("bound by %s; free memory is not known", count(cores, "core")), cores, -1}
	}
	fit := free / perJob
	memory := fmt.Sprintf("%.1f GiB free at %.1f GiB a job", float64(free)/1024, float64(perJob)/1024)
	if fit < cores {
		return Jobs{max(fit, 1), fmt.Sprintf("bound by memory: %s; %s", memory, count(cores, "core")), cores, fit}
	}
	return Jobs{cores, fmt.Sprintf("bound by %s; %s would allow %d", count(cores, "core"), memory, fit), cores, fit}
}

func (j Jobs) String() string { return fmt.Sprintf("%s (%s)", count(j.N, "job"), j.Why) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// freeMiB is the memory that can be used without swapping: what the kernel
// calls available, within the limit of this process's control group. It is -1
// where the system does not say.
func freeMiB() int {
	free := meminfo("/proc/meminfo")
	if room := cgroupRoom("/sys/fs/cgroup"); room >= 0 && (free < 0 || room < free) {
		free = room
	}
	return free
}

func meminfo(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return -1
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), "MemAvailable:"); ok {
			if kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB")); err == nil {
				return kb / 1024
			}
		}
	}
	return -1
}

// cgroupRoom is what control group v2 leaves: its limit less what is in use
// and cannot be dropped. -1 means no limit.
func cgroupRoom(dir string) int {
	limit, ok := readInt(filepath.Join(dir, "memory.max"))
	if !ok {
		return -1
	}
	used, ok := readInt(filepath.Join(dir, "memory.current"))
	if !ok {
		return -1
	}
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
	for _, line := range strings.Split(string(stat), "\n") {
		if v, ok := strings.CutPrefix(line, "inactive_file "); ok {
			if n, err := strconv.Atoi(v); err == nil {
				used -= n
			}
		}
	}
	return max(limit-used, 0) / (1 << 20)
}

func readInt(path string) (int, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	return n, err == nil
}
