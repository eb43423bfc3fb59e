import { policyManifest, yamlText, type PolicyTarget } from '../../ui/manifest.ts'

/** A place of a policy where an expression can be used. */
interface Use {
  readonly title: string
  /** The lines below `spec`. */
  readonly section: (expression: string) => readonly string[]
}

const header = (phase: string): Use => ({
  title: `a header of the ${phase}`,
  section: (expression) => [
    'traffic:',
    '  transformation:',
    `    ${phase}:`,
    '      set:',
    '        - name: x-example',
    ...yamlText('          value: ', expression),
  ],
})

/** Uses by phase. Phases without an entry have none in a policy of routes. */
const uses: Readonly<Record<string, readonly Use[]>> = {
  request: [
    {
      title: 'requests to reject',
      section: (expression) => [
        'traffic:',
        '  authorization:',
        '    action: Deny',
        '    policy:',
        '      matchExpressions:',
        ...yamlText('        - ', expression),
      ],
    },
    header('request'),
  ],
  response: [header('response')],
  log: [
    { title: 'requests to log', section: (expression) => ['frontend:', '  accessLog:', ...yamlText('    filter: ', expression)] },
    {
      title: 'a field of the access log',
      section: (expression) => [
        'frontend:',
        '  accessLog:',
        '    attributes:',
        '      add:',
        '        - name: example',
        ...yamlText('          expression: ', expression),
      ],
    },
  ],
}

/** Titles of the uses of a phase. */
export const usesOf = (phase: string): string[] => (uses[phase] ?? []).map(({ title }) => title)

/** The manifest of a policy that uses an expression on a Gateway. Undefined if the phase has no such use. */
export function writeManifest(phase: string, title: string, expression: string, gateway: Omit<PolicyTarget, 'kind'>): string | undefined {
  const found = uses[phase] ?? []
  const use = found.find((each) => each.title === title) ?? found[0]
  return use && policyManifest('example', { kind: 'Gateway', ...gateway }, use.section(expression))
}
