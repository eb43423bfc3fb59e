import { describe, expect, test } from '@jest/globals'
import type { Phase } from '#api/cel/index.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import { refName, type Schema } from '#api/schema.ts'
import { checkExpression } from '../../program/expression.ts'
import { phaseOf } from './phases.ts'

describe('where expressions are evaluated', () => {
  test.each<[definition: string, path: string, owner: string, Phase]>([
    ['Traffic', 'authorization.policy.matchExpressions.0', 'AuthorizationPolicy.matchExpressions', 'request'],
    ['Traffic', 'transformation.request.set.0.value', 'HeaderTransformation.value', 'request'],
    ['Traffic', 'transformation.response.set.0.value', 'HeaderTransformation.value', 'response'],
    ['Traffic', 'transformation.request.metadata.response', 'Transform.metadata', 'request'],
    ['Traffic', 'transformation.response.body', 'Transform.body', 'response'],
    ['Traffic', 'extAuth.grpc.requestMetadata.a', 'AgentExtAuthGRPC.requestMetadata', 'request'],
    ['Traffic', 'extAuth.http.responseMetadata.a', 'AgentExtAuthHTTP.responseMetadata', 'response'],
    ['Traffic', 'rateLimit.local.0.key', 'LocalRateLimit.key', 'request'],
    ['Traffic', 'rateLimit.global.descriptors.0.entries.0.expression', 'RateLimitDescriptorEntry.expression', 'backend'],
    ['Traffic', 'transformation.when', 'Transformation.when', 'request'],
    ['BackendFull', 'transformation.when', 'Transformation.when', 'backend'],
    ['BackendFull', 'transformation.request.body', 'Transform.body', 'backend'],
    ['BackendFull', 'transformation.response.body', 'Transform.body', 'response'],
    ['BackendFull', 'health.unhealthyCondition', 'Health.unhealthyCondition', 'response'],
    ['Traffic', 'responseOverride.rules.0.match.condition', 'ResponseMatch.condition', 'response'],
    ['ProxyBackendSpec', 'ai.models.0.rules.0.when', 'AIModelRule.when', 'llm'],
    ['ProxyBackendSpec', 'ai.models.0.sticky', 'AIModel.sticky', 'llm'],
    ['BackendFull', 'ai.transformations.0.expression', 'FieldTransformation.expression', 'llm'],
    ['BackendFull', 'mcp.authorization.policy.matchExpressions.0', 'AuthorizationPolicy.matchExpressions', 'request'],
    ['ProxyBackendSpec', 'policies.transformation.request.set.1.value', 'HeaderTransformation.value', 'backend'],
    ['ProxyBackendSpec', 'ai.groups.0.providers.0.policies.transformation.response.body', 'Transform.body', 'response'],
    ['Frontend', 'accessLog.filter', 'AccessLog.filter', 'log'],
    ['Frontend', 'tracing.randomSampling', 'Tracing.randomSampling', 'request'],
    ['Frontend', 'tracing.resources.0.expression', 'ResourceAdd.expression', 'resource'],
    ['ProxyBackendSpec', 'ai.models.0.rules.0.rollout.abortIf', 'AIModelRollout.abortIf', 'rollout'],
    ['Frontend', 'networkAuthorization.policy.matchExpressions.0', 'AuthorizationPolicy.matchExpressions', 'network'],
  ])('%s %s', (definition, path, owner, phase) => expect(phaseOf(definition, path.split('.'), owner)).toBe(phase))

  test('no field with an expression is forgotten', () => {
    const owners: string[] = []
    const walk = (name: string, schema: Schema, field: string): void => {
      if (schema.$ref !== undefined && refName(schema.$ref) === 'CELExpression') owners.push(`${name}.${field}`)
      for (const [property, child] of Object.entries(schema.properties ?? {})) walk(name, child, property)
      if (schema.items !== undefined) walk(name, schema.items, field)
      if (typeof schema.additionalProperties === 'object') walk(name, schema.additionalProperties, field)
    }
    for (const [name, schema] of Object.entries(definitions)) walk(name, schema, '')
    expect(owners.toSorted()).toEqual([
      'A2ASkill.when',
      'AIModel.sticky',
      'AIModelRollout.abortIf',
      'AIModelRule.when',
      'AccessLog.filter',
      'AgentExtAuthGRPC.requestMetadata',
      'AgentExtAuthHTTP.addRequestHeaders',
      'AgentExtAuthHTTP.path',
      'AgentExtAuthHTTP.redirect',
      'AgentExtAuthHTTP.responseMetadata',
      'AttributeAdd.expression',
      'AuthorizationPolicy.matchExpressions',
      'Budget.key',
      'Budget.models',
      'DirectResponse.bodyExpression',
      'DirectResponse.when',
      'DirectResponseHeader.value',
      'ExtAuth.when',
      'ExtProc.when',
      'FaultInjection.when',
      'FieldTransformation.expression',
      'GlobalRateLimit.when',
      'HeaderTransformation.value',
      'Health.unhealthyCondition',
      'HttpCache.tenant',
      'JWTSign.claims',
      'LlmCache.tenant',
      'LocalRateLimit.key',
      'LocalRateLimit.when',
      'McpOpenApi.response',
      'McpToolOverride.computedArguments',
      'OAuthCredentials.subjectToken',
      'OIDC.login',
      'Plugin.when',
      'RateLimitDescriptorEntry.expression',
      'ResourceAdd.expression',
      'ResponseMatch.condition',
      'Tracing.clientSampling',
      'Tracing.randomSampling',
      'Transform.body',
      'Transform.metadata',
      'Transformation.when',
    ])
  })
})

describe('a variable that is not there at its place', () => {
  test.each<[Phase, string, string]>([
    ['request', 'response.code == 200', 'line 1, column 1: '],
    ['request', 'true && llm.provider == "a"', 'line 1, column 9: '],
    ['network', 'request.path == "/"', 'line 1, column 1: '],
    ['resource', 'source.address', 'line 1, column 1: '],
    ['response', 'llmRequest.model', 'line 1, column 1: '],
  ])('%s: %s', (phase, expression, position) => {
    expect(checkExpression(expression)).toBeUndefined()
    expect(checkExpression(expression, phase)?.startsWith(position)).toBe(true)
  })
})
