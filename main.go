// Command dot4fa turns llama.cpp at a pinned commit into one with a packed 8-bit
// K cache and DOT4 attention for RDNA3 GPUs, and builds it.
package main

import (
	"os"

	"dot4fa/internal/cli"
)

func main() { os.Exit(cli.Main(assets)) }
