// half and half2 for the device-only compile.

#pragma once

#include "hip_runtime.h"
#include "half_types.h"
