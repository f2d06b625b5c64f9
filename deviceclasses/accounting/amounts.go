package accounting

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mostNumber is the largest number, and more than a node can have. The sum of two fits
// into 64 bits.
const mostNumber = 1 << 61

// number is an amount without its unit: CPUs in thousandths, everything else in bytes. It is
// 0 to mostNumber.
func number(name corev1.ResourceName, list corev1.ResourceList) int64 {
	amount := list[name]
	if name == corev1.ResourceCPU {
		return bounded(amount, mostNumber/1000, amount.MilliValue)
	}
	return whole(amount)
}

// whole is an amount in its unit, rounded up. It is 0 to mostNumber.
func whole(amount resource.Quantity) int64 { return bounded(amount, mostNumber, amount.Value) }

// bounded returns value(), which is wrong for an amount that does not fit into 64 bits.
func bounded(amount resource.Quantity, most int64, value func() int64) int64 {
	switch {
	case amount.Sign() <= 0:
		return 0
	case amount.CmpInt64(most) >= 0:
		return mostNumber
	}
	return value()
}

// plus adds two numbers.
func plus(a, b int64) int64 { return min(a+b, mostNumber) }

func quantity(name corev1.ResourceName, number int64) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(number, resource.DecimalSI)
	}
	return *resource.NewQuantity(number, resource.BinarySI)
}

func isHugepages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), hugepagesOfPod)
}

// counted reports whether claims of zones can hold the resource.
func counted(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || isHugepages(name)
}

// add adds amounts to sums.
func add(sums, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := sums[name]
		sum.Add(amount)
		sums[name] = sum
	}
}

// largest returns, of each resource, the larger of two amounts.
func largest(a, b corev1.ResourceList) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, amounts := range []corev1.ResourceList{a, b} {
		for name, amount := range amounts {
			if amount.Cmp(list[name]) > 0 {
				list[name] = amount
			}
		}
	}
	return list
}

// excess returns the amounts by which a is more than b.
func excess(a, b corev1.ResourceList) corev1.ResourceList {
	more := corev1.ResourceList{}
	for name := range a {
		if difference := number(name, a) - number(name, b); counted(name) && difference > 0 {
			more[name] = quantity(name, difference)
		}
	}
	return more
}

func equal(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// names returns the resources that the shares hold, sorted.
func names(shares []Share) []corev1.ResourceName {
	sums := corev1.ResourceList{}
	for _, share := range shares {
		add(sums, share.Amounts)
	}
	return slices.Sorted(maps.Keys(sums))
}

// Text lists amounts for people, sorted by name: "cpu 4, memory 256Mi".
func Text(amounts corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		parts = append(parts, string(name)+" "+amount.String())
	}
	return strings.Join(parts, ", ")
}
