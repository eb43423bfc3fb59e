/** `registry/repository@sha256:digest`, with the host of the registry: a tag could name other code tomorrow, and no host is a default. */
export const PLUGIN_IMAGE_PATTERN = '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)+@sha256:[0-9a-f]{64}$'

/** The parts of an image reference. */
export interface PluginImage {
  /** `host` or `host:port`. */
  readonly registry: string
  readonly repository: string
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
}

/** Splits a reference of the form PLUGIN_IMAGE_PATTERN. Undefined for others. */
export function parsePluginImage(image: string): PluginImage | undefined {
  if (!new RegExp(PLUGIN_IMAGE_PATTERN).test(image)) return undefined
  const [name = '', digest = ''] = image.split('@')
  const slash = name.indexOf('/')
  return { registry: name.slice(0, slash), repository: name.slice(slash + 1), digest }
}
