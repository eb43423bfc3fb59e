/** A registry, or a repository or a part of its path from the left. */
export const IMAGE_PREFIX_PATTERN = '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)*$'

const REGISTRY = '(localhost(:[0-9]{1,5})?|[a-z0-9][-a-z0-9]*(\\.[-a-z0-9]+)+(:[0-9]{1,5})?|[a-z0-9][-a-z0-9]*:[0-9]{1,5})'
/**
 * An image of a container: `registry/repository`, with a tag, a digest or both. The host of the registry has a dot or a port, or is localhost: nodes take a name without them for
 * a path of their default registry.
 */
export const CONTAINER_IMAGE_PATTERN = `^${REGISTRY}(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)+(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@sha256:[0-9a-f]{64})?$`

/** Registry and repository of an image, without tag and digest. */
export const repositoryOf = (image: string): string => image.replace(/@.*$/, '').replace(/:[^/]*$/, '')

/** Whether one of the prefixes is the registry, the repository, or a part of its path that ends at a slash. */
export function isImagePermitted(image: string, prefixes: readonly string[]): boolean {
  const name = repositoryOf(image)
  return prefixes.some((prefix) => name === prefix || name.startsWith(`${prefix}/`))
}
