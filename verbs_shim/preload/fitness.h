// Says why a program that looks for devices will find none, which libibverbs does not tell it.
#pragma once

namespace rocemu::preload {

// To be called when the program reads the list of devices: says in one line, once, that the NIC's
// state directory is not there, or that there is no provider for the program's libibverbs. Keeps
// errno.
void complain_if_unfit();

}  // namespace rocemu::preload
