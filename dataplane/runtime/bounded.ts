/** Sets an entry of a map with at most `max` entries, as its newest one; the oldest gives way. For caches whose keys peers choose. */
export function setBounded<K, V>(map: Map<K, V>, key: K, value: V, max: number): void {
  if (!map.delete(key) && map.size >= max) for (const oldest of map.keys()) if (map.delete(oldest)) break
  map.set(key, value)
}
