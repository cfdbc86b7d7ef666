package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/loader"
	"dot4fa/internal/page"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
)

// libraries makes sure that what was built will start: every library that the
// programs load is found, ROCm's in the ROCm that was chosen, and the program
// of the printed command starts with an empty environment. What an import
// library stands for is not there, so those programs are not started.
func (r *Run) libraries(ctx context.Context, d *Done) error {
	if runtime.GOOS != "linux" || len(d.Programs) == 0 {
		return nil
	}
	start := time.Now()
	root := ""
	if r.Recipe.Backend == recipe.HIP {
		rocm := r.Tools(ctx).ROCm
		root, d.CompileOnly = rocm.Root, rocm.CompileOnly
	}
	report, err := loader.New(r.Machine).Check(d.Programs, root)
	if errors.Is(err, loader.ErrKind) {
		return fault.New(fault.VerifyFailed, "%w", err).Hintf("remove the build directory and build again")
	}
	if err != nil {
		return environment(err, d.Work, "cannot look at what was built")
	}
	d.Libraries = report
	if len(report.Problems) > 0 {
		return fault.New(fault.VerifyFailed, "what was built will not start\n    %s", strings.Join(report.Problems, "\n    ")).
			Hintf("name one ROCm with --toolchain, dot4fa clean --build, and build again; dot4fa doctor shows which are there")
	}
	what := fmt.Sprintf("all %d of %s found", len(report.Libraries), page.Plural(len(d.Programs), "program"))
	if len(report.FromRoot) > 0 {
		what += fmt.Sprintf(", %s from %s", strings.Join(report.FromRoot, " "), root)
	}
	if !d.CompileOnly {
		if err := starts(ctx, d.Programs[0]); err != nil {
			return err
		}
	}
	if !d.Nothing() {
		r.Report.Say("%-9s %s (%s)", "libraries", what, progress.Duration(time.Since(start)))
	}
	return nil
}

// starts runs a program for its help with an empty environment. That the
// loader or a library's initialisation fails shows in the exit status; what
// else a program says does not matter.
func starts(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := shell.Command{Bare: true, Path: program, Args: []string{"--help"}}
	out, err := cmd.Text(ctx)
	var exit *exec.ExitError
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() != 127 && exit.ExitCode() >= 0:
		return nil
	}
	return fault.New(fault.VerifyFailed, "it does not start: %w\n    %s", errors.Unwrap(err), strings.ReplaceAll(shell.Last(out, 4), "\n", "\n    ")).At("%s", program).Hintf("%s shows the same", cmd)
}
