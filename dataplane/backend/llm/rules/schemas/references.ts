import { isObject } from '../../common/json.ts'
import { objectOf, textOf } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'

/** The target of a reference inside the schema. */
export function refer(reference: unknown, root: JsonObject): JsonObject | undefined {
  const path = textOf(reference)
  if (path?.startsWith('#') !== true) return undefined
  let target: unknown = root
  for (const part of path.slice(1).split('/').filter(Boolean)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined
  }
  return objectOf(target)
}
