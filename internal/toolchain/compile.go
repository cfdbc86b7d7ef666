package toolchain

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// Compile runs a compiler on dot4fa's own source. What it says of that is in the
// error in full, a fault with code BuildFailed.
func Compile(ctx context.Context, compiler string, args ...string) error {
	cmd := shell.Command{Path: compiler, Args: args}
	text, err := cmd.Text(ctx)
	var failed *shell.Failed
	if errors.As(err, &failed) {
		return fault.New(fault.BuildFailed, "%s: %w\n%s", filepath.Base(compiler), failed.Err, strings.TrimSpace(text)).Hintf("run it by hand: %s", cmd)
	}
	return err
}
