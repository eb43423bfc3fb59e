import type { Image } from '#gen/v1alpha1/types.ts'
import { failParameters, type DeployFailure, type DeploySettings } from './types.ts'

/** `[registry/]repository[:tag][@digest]`; an empty part is left out. Fails without a repository. */
export function formatImage(image: Image, defaults: DeploySettings['image']): string | DeployFailure {
  const { registry = defaults.registry, repository = defaults.repository, tag = defaults.tag, digest = '' } = image
  if (repository === '') return failParameters('image.repository is empty; set it in ProxyParameters, or leave it out for the default', 'PX1022')
  return `${registry === '' ? '' : `${registry}/`}${repository}${tag === '' ? '' : `:${tag}`}${digest === '' ? '' : `@${digest}`}`
}
