// A library of NVIDIA's name for machines that have none of its GPUs, against NVIDIA's own header: every display controller
// that is no VGA controller (class 038000) is a GPU of 80 GiB, each linked with the next one. What is written to
// /run/dra-numa/xid, "ADDRESS XID", is an error of a GPU: it is told once, and the file is removed.
//
// FAKE_NVML_ROOT is the folder that has sys and run, if that is not /.
#include <dirent.h>
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nvmlDevice_st {
	unsigned int domain, bus, device;
};

struct nvmlEventSet_st {
	unsigned long long types;
};

static struct nvmlDevice_st gpus[8];
static unsigned int count;
static struct nvmlEventSet_st events;

// belowRoot is good until it is called again.
static const char *belowRoot(const char *name) {
	static char path[256];
	const char *root = getenv("FAKE_NVML_ROOT");
	snprintf(path, sizeof path, "%s/%s", root ? root : "", name);
	return path;
}

static int isGPU(const struct dirent *function) {
	char name[64], class[16] = "";
	snprintf(name, sizeof name, "sys/bus/pci/devices/%.16s/class", function->d_name);
	FILE *file = fopen(belowRoot(name), "r");
	if (!file)
		return 0;
	(void)!fgets(class, sizeof class, file);
	fclose(file);
	return !strncmp(class, "0x038000", 8);
}

nvmlReturn_t nvmlInit_v2(void) {
	struct dirent **found;
	int n = scandir(belowRoot("sys/bus/pci/devices"), &found, isGPU, alphasort);
	if (n < 0)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	count = 0;
	for (int i = 0; i < n; i++) {
		struct nvmlDevice_st gpu;
		if (count < 8 && sscanf(found[i]->d_name, "%x:%x:%x.0", &gpu.domain, &gpu.bus, &gpu.device) == 3)
			gpus[count++] = gpu;
		free(found[i]);
	}
	free(found);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }

const char *nvmlErrorString(nvmlReturn_t result) {
	static char text[32];
	snprintf(text, sizeof text, "error %d", result);
	return text;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount) {
	*deviceCount = count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
	if (index >= count)
		return NVML_ERROR_INVALID_ARGUMENT;
	device->handle = &gpus[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
	memset(pci, 0, sizeof *pci);
	snprintf(pci->busId, sizeof pci->busId, NVML_DEVICE_PCI_BUS_ID_FMT, device.handle->domain, device.handle->bus, device.handle->device);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
	snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012x", (unsigned int)(device.handle - gpus));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
	snprintf(name, length, "Fake NVIDIA GPU");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
	memset(memory, 0, sizeof *memory);
	memory->total = memory->free = 80ULL << 30;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
	*major = 9, *minor = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *currentMode, unsigned int *pendingMode) {
	*currentMode = *pendingMode = NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive) {
	if (link > 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*isActive = count > 1 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
	nvmlDevice_t next = {&gpus[(device.handle - gpus + 1) % count]};
	return nvmlDeviceGetPciInfo_v3(next, pci);
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet) {
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	events.types = 0;
	set->handle = &events;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *eventTypes) {
	*eventTypes = nvmlEventTypeXidCriticalError;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set) {
	set.handle->types |= eventTypes;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms) {
	for (unsigned int waited = 0; waited < timeoutms; waited += 100, usleep(100000)) {
		FILE *file = fopen(belowRoot("run/dra-numa/xid"), "r");
		if (!file)
			continue;
		struct nvmlDevice_st gpu;
		unsigned long long xid;
		int read = fscanf(file, "%x:%x:%x.0 %llu", &gpu.domain, &gpu.bus, &gpu.device, &xid);
		fclose(file);
		if (read != 4) // it is being written
			continue;
		unlink(belowRoot("run/dra-numa/xid"));
		for (unsigned int i = 0; i < count && set.handle->types & nvmlEventTypeXidCriticalError; i++) {
			if (memcmp(&gpus[i], &gpu, sizeof gpu))
				continue;
			memset(data, 0, sizeof *data);
			data->device.handle = &gpus[i];
			data->eventType = nvmlEventTypeXidCriticalError;
			data->eventData = xid;
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { return NVML_SUCCESS; }
