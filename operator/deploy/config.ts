import { stringify } from 'yaml'
import type { PluginsSpec, ProxyLogging, UpstreamsSpec } from '#gen/v1alpha1/types.ts'

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The data plane's config file: rawConfig, overridden by the typed fields (operator.md §2.5). The log level is an environment variable instead. */
export function renderConfig(rawConfig: Fields, logging: ProxyLogging, plugins: PluginsSpec = {}, upstreams: UpstreamsSpec = {}): string {
  const config = {
    ...((logging.format ?? logging.sensitiveHeaders) !== undefined && {
      logging: { ...(logging.format && { format: logging.format }), ...(logging.sensitiveHeaders && { sensitiveHeaders: logging.sensitiveHeaders }) },
    }),
    // The config stream carries the permission, so that pods need not be replaced; only a withdrawn one overrides rawConfig.
    ...(plugins.inProcess === false && { plugins: { inProcess: false } }),
    ...(Object.keys(upstreams).length > 0 && { upstreams }),
  }
  const typed = { config }
  return stringify(mergeMaps(rawConfig, typed), { sortMapEntries: true, lineWidth: 0, aliasDuplicateObjects: false })
}

/** Maps are merged, everything else is replaced. */
function mergeMaps(under: Fields, over: Fields): Fields {
  const merged = new Map(Object.entries(under))
  for (const [key, value] of Object.entries(over)) {
    const before = merged.get(key)
    merged.set(key, isFields(before) && isFields(value) ? mergeMaps(before, value) : value)
  }
  return Object.fromEntries(merged)
}
