import { isImagePermitted } from '#api/image.ts'
import type { RemoteRequest } from '../../model/translation.ts'
import type { PolicyState } from '../policy/proxy-policy.ts'

/** An image never changes: what was fetched is kept. */
const CACHE_MS = 86_400_000

/** The files of images that policies name as plugins, one for each id, if a Gateway that the policy takes effect on permits the image. */
export function findPluginImages(policies: readonly PolicyState[]): RemoteRequest[] {
  const byId = new Map<string, RemoteRequest>()
  for (const { sections, gateways } of policies) {
    for (const { id, image, file } of sections.flatMap(({ resolved }) => resolved.images)) {
      if (![...gateways.keys()].some(({ pluginImages }) => isImagePermitted(image, pluginImages))) continue
      byId.set(id, { id, url: { host: image, port: 80, path: file.startsWith('/') ? file : `/${file}` }, cacheMs: CACHE_MS })
    }
  }
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
}
