// Package routes is the one place that says which kernel an attention call
// takes and which environment variables change that.
//
// Two tables hold everything: Table, the routes, and Flags, the environment.
// The `dot4fa routes` and `dot4fa env` commands print them, Route and ParseEnv
// judge by them, and CXX hands them to the templates of packed16-config.h,
// packed16-routes.h and packed16-env.h, so that the device code judges by the
// same rows. A test compiles the rendered headers and compares their answers
// with this package's.
package routes
