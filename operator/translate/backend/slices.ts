import { compareObjects } from '../../source/snapshot.ts'
import type { EndpointSlice } from '../../source/objects.ts'
import type { Lookup } from '../common/dependencies.ts'
import { findSliceService } from './service.ts'

/** One slice before and after a change. */
export interface SliceChange {
  readonly old: EndpointSlice | undefined
  readonly now: EndpointSlice | undefined
}

/** The EndpointSlices of each Service, by `<namespace>/<name>` of the Service, while they change. */
export class SliceGroups implements Lookup<readonly EndpointSlice[]> {
  readonly #byService = new Map<string, readonly EndpointSlice[]>()

  get(service: string): readonly EndpointSlice[] | undefined {
    return this.#byService.get(service)
  }

  /** Applies changes. Returns the Services whose slices differ. */
  update(changes: readonly SliceChange[]): Iterable<string> {
    const changed = new Map<string, { olds: Set<EndpointSlice>; news: EndpointSlice[] }>()
    const groupOf = (slice: EndpointSlice): { olds: Set<EndpointSlice>; news: EndpointSlice[] } => {
      const key = findSliceService(slice)
      const group = changed.get(key) ?? { olds: new Set(), news: [] }
      changed.set(key, group)
      return group
    }
    for (const { old, now } of changes) {
      if (old) groupOf(old).olds.add(old)
      if (now) groupOf(now).news.push(now)
    }
    for (const [key, { olds, news }] of changed) {
      const group = [...(this.#byService.get(key) ?? []).filter((slice) => !olds.has(slice)), ...news].toSorted(compareObjects)
      if (group.length > 0) this.#byService.set(key, group)
      else this.#byService.delete(key)
    }
    return changed.keys()
  }
}
