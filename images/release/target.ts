/** What a release is called and where it is published. */
export interface Target {
  /** Semantic version without `v`, such as `0.2.0`: of charts, npm package and programs. */
  readonly version: string
  /** `v` and the version: git tag and tag of the images. */
  readonly tag: string
  /** GitHub repository, such as `example/proxy-service`. */
  readonly repository: string
  /** First part of the names of images, and of charts with `/charts`: `ghcr.io/example/proxy-service`. */
  readonly registry: string
  /** Scope of the npm packages: `@example`. */
  readonly npmScope: string
}

/**
 * Checks the names of a release and derives the others from them.
 *
 * @param repository `owner/name` on GitHub
 * @param registry default: `ghcr.io/<repository>`
 */
export function describeTarget({
  tag,
  repository,
  registry,
}: {
  readonly tag: string
  readonly repository: string
  readonly registry?: string | undefined
}): Target {
  // Tags of images cannot contain the `+` of build metadata.
  const version = /^v((?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?)$/.exec(tag)?.[1]
  if (version === undefined)
    throw new Error(`VERSION is ${JSON.stringify(tag)}; it must be v, a semantic version and no build metadata, such as v0.2.0 or v0.2.0-rc.1`)
  const owner = /^([\w-]+)\/[\w.-]+$/.exec(repository)?.[1]
  if (owner === undefined) throw new Error(`the repository is ${JSON.stringify(repository)}; it must be owner/name`)
  // Registries and npm accept lower case only.
  return { version, tag, repository, registry: (registry ?? `ghcr.io/${repository}`).toLowerCase(), npmScope: `@${owner.toLowerCase()}` }
}
