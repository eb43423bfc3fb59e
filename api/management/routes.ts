import { z } from '@hono/zod-openapi'

const valueMatch = z.object({ name: z.string(), type: z.string(), value: z.string() })

const ruleMatch = z
  .object({
    text: z.string().openapi({ description: 'The match as one line.', example: 'GET PathPrefix /shop, header x-beta: yes' }),
    path: z.object({ type: z.enum(['Exact', 'PathPrefix', 'RegularExpression']), value: z.string() }),
    method: z.string().nullable(),
    headers: z.array(valueMatch),
    queryParams: z.array(valueMatch),
  })
  .openapi('RuleMatch')

const weightedBackend = z.object({ key: z.string(), weight: z.number() })

const ruleSummary = z
  .object({
    index: z.number(),
    name: z.string().nullable(),
    matches: z.array(ruleMatch),
    backends: z.array(weightedBackend),
    shadows: z
      .array(z.string())
      .openapi({ description: 'One line for each match that gets no requests of some hosts, with the rule or listener that gets them.' }),
  })
  .openapi('RuleSummary')

const routeSummary = z
  .object({
    key: z.string().openapi({ description: '`<kind> <namespace>/<name>`.' }),
    kind: z.string(),
    namespace: z.string(),
    name: z.string(),
    origin: z.string().nullable().openapi({
      description:
        'Field of the short form of a config file that the route is made from: `llm.models.gpt-4o`, `llm` for lists of models and errors, `mcp`. Null for others.',
    }),
    listeners: z.array(z.string()),
    hostnames: z.array(z.string()),
    createdAt: z.string().nullable().openapi({ description: 'Null for objects of a file or directory.' }),
    rules: z.array(ruleSummary),
  })
  .openapi('RouteSummary')

export const routeList = z.object({ routes: z.array(routeSummary) }).openapi('RouteList')

const rival = z
  .object({
    route: z.string().openapi({ description: '`<kind> <namespace>/<name>`.' }),
    ruleIndex: z.number(),
    match: z.string(),
    reason: z.string().openapi({ description: 'Why it wins: the first criterion of the order of precedence that differs.' }),
  })
  .openapi('Rival')

const precedence = z
  .object({
    listener: z.string(),
    hostname: z.string().nullable().openapi({ description: 'Null: any.' }),
    match: z.string(),
    position: z.number().openapi({ description: 'From 1; the matches of a hostname are tried in this order.' }),
    of: z.number(),
    rivals: z.array(rival).openapi({ description: 'Matches that win over this one for requests that both match; at most 20, strongest first.' }),
  })
  .openapi('Precedence')

const source = z.object({ from: z.string().openapi({ example: 'ProxyPolicy default/limits' }), target: z.string() }).openapi('PolicySource')

const effectiveField = z
  .object({
    value: z.unknown().openapi({ description: 'The value in force, secrets redacted.' }),
    sources: z.array(source).openapi({ description: 'The source of the value; all sources for fields that accumulate.' }),
    overrides: z.array(source).openapi({ description: 'Sources that were overridden, strongest first.' }),
  })
  .openapi('EffectiveField')

const effective = z
  .object({
    listener: z.string(),
    service: z.string().nullable().openapi({ description: 'Service whose traffic policies are included; null for all other backends.' }),
    preRouting: z.record(z.string(), effectiveField),
    postRouting: z.record(z.string(), effectiveField),
    backends: z
      .record(z.string(), z.record(z.string(), effectiveField))
      .optional()
      .openapi({ description: 'Fields of the section `backend`, by backend; those without fields are left out. Absent in old versions.' }),
  })
  .openapi('EffectivePolicy')

const ruleDetail = ruleSummary
  .extend({
    precedence: z.array(precedence),
    effective: z.array(effective).openapi({ description: 'One entry per listener, and per Service with traffic policies.' }),
    message: z.unknown().openapi({ description: 'The rule as the data plane received it, secrets redacted.' }),
  })
  .openapi('RuleDetail')

export const routeDetail = routeSummary.extend({ rules: z.array(ruleDetail) }).openapi('RouteDetail')

export type RouteSummary = z.infer<typeof routeSummary>
export type RuleMatch = z.infer<typeof ruleMatch>
export type RouteDetail = z.infer<typeof routeDetail>
export type Precedence = z.infer<typeof precedence>
export type EffectivePolicy = z.infer<typeof effective>
