# What virtual nodes have: of Q35's devices those that a topology file can name, and
# those that every node has.
CONFIG_Q35=y
CONFIG_VTD=y
CONFIG_PXB=y
CONFIG_PCIE_PORT=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_NET=y
CONFIG_BOCHS_DISPLAY=y
CONFIG_E1000E_PCI_EXPRESS=y
CONFIG_IGB_PCI_EXPRESS=y
CONFIG_NVME_PCI=y
# What the files of PXB and NVMe call, with devices or without.
CONFIG_CXL=y
CONFIG_CXL_MEM_DEVICE=y
CONFIG_SPDM_SOCKET=y
