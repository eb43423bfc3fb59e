/** A cloud whose credentials the process itself may have. */
export type Cloud = 'AWS' | 'Azure' | 'Google Cloud'

const REGION = '[a-z]{2}(?:-[a-z]+)+-\\d+'

/**
 * Hosts of APIs that the cloud itself runs: no customer reads the requests to them. Names under the same domains that customers run are left out:
 * instances, load balancers, API gateways, private endpoints, buckets with web sites, functions, containers.
 */
const apiHosts: Readonly<Record<Cloud, RegExp>> = {
  // `<service>.<region>.<domain>`: customers' names have other numbers of labels. API Gateway serves customers at such a name too.
  AWS: new RegExp(
    `^(?!execute-api\\.)(?:runtime\\.sagemaker|[a-z0-9-]+)\\.${REGION}\\.(?:amazonaws\\.com(?:\\.cn)?|api\\.aws|c2s\\.ic\\.gov|sc2s\\.sgov\\.gov)$`,
  ),
  Azure:
    /^(?:[a-z0-9-]+\.(?:(?:openai|cognitiveservices)\.azure\.(?:com|us|cn)|services\.ai\.azure\.com|api\.cognitive\.microsoft\.com|vault\.azure\.net)|management\.azure\.com|management\.(?:usgovcloudapi\.net|chinacloudapi\.cn)|graph\.microsoft\.com)$/,
  'Google Cloud': /^(?:[a-z0-9-]+\.)+googleapis\.com$/,
}

/** A host as it is compared: in lower case, without the final dot. */
export const comparableHost = (host: string): string => host.toLowerCase().replace(/\.$/, '')

/** Whether a host is of an API that the cloud itself runs. */
export const isApiHost = (cloud: Cloud, host: string): boolean => apiHosts[cloud].test(comparableHost(host))

/** Whether one of the patterns, a host or `*.` and a suffix, is for a host. */
export function isListedHost(patterns: readonly string[], host: string): boolean {
  const wanted = comparableHost(host)
  return patterns.map(comparableHost).some((pattern) => (pattern.startsWith('*.') ? wanted.endsWith(pattern.slice(1)) : wanted === pattern))
}
