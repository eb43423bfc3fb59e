import type { ResponseBodyReference } from '#gen/v1alpha1/types.ts'
import type { Snapshot } from '../../source/snapshot.ts'

/** The config holds the text. */
const MAX_BYTES = 256 * 1024

/** The body of a response in a ConfigMap, or why there is none. */
export function readResponseBody(
  snapshot: Snapshot,
  namespace: string,
  { name, key }: ResponseBodyReference,
): { readonly text: string; readonly problem?: undefined } | { readonly text?: undefined; readonly problem: string } {
  const shown = `ConfigMap ${namespace}/${name}`
  const map = snapshot.get('ConfigMap', namespace, name)
  if (map === undefined) return { problem: `${shown} not found; the body is empty` }
  const text = Object.hasOwn(map.data ?? {}, key) ? map.data?.[key] : undefined
  if (text === undefined) return { problem: `${shown} has no ${key}; the body is empty` }
  const bytes = Buffer.byteLength(text)
  return bytes > MAX_BYTES ? { problem: `${key} of ${shown} has ${bytes} bytes, at most ${MAX_BYTES} are sent; the body is empty` } : { text }
}
