package accounting

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// number is an amount without its unit: CPUs in thousandths, everything else in bytes.
func number(name corev1.ResourceName, list corev1.ResourceList) int64 {
	amount := list[name]
	if name == corev1.ResourceCPU {
		return amount.MilliValue()
	}
	return amount.Value()
}

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
