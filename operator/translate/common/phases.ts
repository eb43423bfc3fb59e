import type { Phase } from '#api/cel/index.ts'

/** Where the data plane evaluates the expressions of a definition's field; those that depend on more are in `phaseOf`. */
const phases: Readonly<Record<string, Phase>> = {
  // Results of an authorization call are read from its own response.
  'AgentExtAuthHTTP.responseMetadata': 'response',
  'AgentExtAuthHTTP.redirect': 'response',
  // Descriptors that count tokens are made where the LLM is known.
  'RateLimitDescriptorEntry.expression': 'backend',
  'Budget.models': 'backend',
  'AccessLog.filter': 'log',
  'AttributeAdd.expression': 'log',
  'ResourceAdd.expression': 'resource',
  'Health.unhealthyCondition': 'response',
  'ResponseMatch.condition': 'response',
  'McpOpenApi.response': 'response',
  'FieldTransformation.expression': 'llm',
  'AIModelRule.when': 'llm',
  'AIModel.sticky': 'llm',
  'AIModelRollout.abortIf': 'rollout',
}

/** Where an expression is evaluated. `path` is in a body of `definition`, `owner` is `<definition>.<field>` that holds it. */
export function phaseOf(definition: string, path: readonly string[], owner: string): Phase {
  const known = phases[owner]
  if (known !== undefined) return known
  if (path.includes('networkAuthorization')) return 'network'
  if (!['Transform', 'Transformation', 'HeaderTransformation'].includes(owner.slice(0, owner.indexOf('.')))) return 'request'
  // Names of metadata follow the side, so the side is the part after the section.
  if (path[path.indexOf('transformation') + 1] === 'response') return 'response'
  return definition === 'Traffic' ? 'request' : 'backend'
}
