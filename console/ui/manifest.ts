/** An object that a policy is attached to. */
export interface PolicyTarget {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** A name; those of config files may have any characters. */
const word = (name: string): string => (/^[a-z][a-z0-9.-]*$/.test(name) ? name : JSON.stringify(name))

/** The manifest of a ProxyPolicy. `section` are the lines below `spec` besides the target. */
export function policyManifest(name: string, { kind, namespace, name: target }: PolicyTarget, section: readonly string[]): string {
  return [
    'apiVersion: proxy.dev/v1alpha1',
    'kind: ProxyPolicy',
    'metadata:',
    `  name: ${word(name)}`,
    `  namespace: ${word(namespace)}`,
    'spec:',
    '  targetRefs:',
    '    - group: gateway.networking.k8s.io',
    `      kind: ${kind}`,
    `      name: ${word(target)}`,
    ...section.map((line) => `  ${line}`),
    '',
  ].join('\n')
}

/** Text as a YAML value after `before`, such as `filter: ` or `- `: a block of lines where it reads better and means the same. */
export function yamlText(before: string, text: string): string[] {
  const indent = before.replace(/^(\s*).*$/s, '$1  ')
  const isBlock = /["\\\n]/.test(text) && /^[^\s#]/.test(text) && !/[^\x20-\x7e\n]|\s$/.test(text)
  if (!isBlock) return [`${before}${JSON.stringify(text)}`]
  return [`${before}|-`, ...text.split('\n').map((line) => (line === '' ? '' : indent + line))]
}
