import { setFlagsFromString } from 'node:v8'

/**
 * Makes V8 collect garbage by the memory that buffers hold. Before 14.8 it counts all that were allocated since the last major collection, held or
 * not: uploads, and bodies over TLS and HTTP/2, make it collect after every few megabytes. Newer versions always count what is held and have
 * no such flag. Returns whether the flag was set. Applies to worker threads too.
 */
export function countHeldBuffers(v8 = process.versions.v8): boolean {
  const [major = 0, minor = 0] = v8.split('.').map(Number)
  // The oldest supported Node, 22.19, has V8 12.4 without the flag, and writes an error for flags that it does not know.
  const hasFlag = (major === 13 && minor >= 6) || (major === 14 && minor < 8)
  if (hasFlag) setFlagsFromString('--external-memory-accounted-in-global-limit')
  return hasFlag
}
