import type { Image } from '#gen/v1alpha1/types.ts'
import type { DeploySettings } from './types.ts'

/** `[registry/]repository[:tag][@digest]`; an empty part is left out. Undefined: there is no repository. */
export function formatImage(image: Image, defaults: DeploySettings['image']): string | undefined {
  const { registry = defaults.registry, repository = defaults.repository, tag = defaults.tag, digest = '' } = image
  if (repository === '') return undefined
  return `${registry === '' ? '' : `${registry}/`}${repository}${tag === '' ? '' : `:${tag}`}${digest === '' ? '' : `@${digest}`}`
}
