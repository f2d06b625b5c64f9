package ways

import "github.com/dra-driver-numa/dra-driver-numa/numa"

// Fit returns how many ways each pool could have of a cache: OS the fewest that the kernel
// takes, Shared a tenth of the cache or what devices use too (shareable_bits), BestEffort a
// third, and Guaranteed the rest of those that no device uses. There is no Infra and no
// Reserved. A cache that is too small has no BestEffort, and then no Shared. [Divide] takes
// what it returns.
//
// It returns an error if the cache has no room for OS and Guaranteed.
func Fit(cache numa.CacheAllocation) (Config, error) {
	all, least := Mask(cache.Mask).Ways(), minWays(&cache)
	shared := max(least, all/10, devices(&cache).Ways())
	var fault error
	for _, c := range []Config{
		{OS: least, BestEffort: max(least, all/3), Shared: shared},
		{OS: least, BestEffort: least, Shared: least},
		{OS: least, Shared: least},
		{OS: least},
	} {
		for c.Guaranteed = max(least, all-c.OS-c.BestEffort-c.Shared); c.Guaranteed >= least; c.Guaranteed-- {
			if _, fault = Divide(cache, c); fault == nil {
				return c, nil
			}
		}
	}
	return Config{}, fault
}
