package main

import "embed"

// assets is what dot4fa renders and applies. Inside a working copy the copy's
// own files are used instead.
//
//go:embed ci/matrix.yaml kernels patches recipes templates
var assets embed.FS
