#pragma once

namespace rocemu {

// Whether other processors see all stores of one in the order in which it made them: on x86 they do
// (Intel SDM vol 3, 8.2.2), on others only where a barrier stands between two (Arm ARM B2.3).
#if defined(__x86_64__) || defined(__i386__)
inline constexpr bool kStoresSeenInOrder = true;
#else
inline constexpr bool kStoresSeenInOrder = false;
#endif

}  // namespace rocemu
