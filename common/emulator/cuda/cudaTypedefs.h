// Types of the driver API's functions.
#pragma once

#include "cuda.h"
