import { choice, keyedList, object, ref, type Definitions, type Schema } from '../schema.ts'

/** A section of `spec.traffic`: its schema, and the phases in which it may be set (traffic.md §2). */
interface Section {
  readonly schema: Schema
  readonly phases: 'Any' | 'PostRouting'
}

const section = (definition: string, phases: Section['phases']): Section => ({ schema: ref(definition), phases })

const sections: Readonly<Record<string, Section>> = {
  authorization: section('Authorization', 'Any'),
  transformation: section('Transformation', 'Any'),
  extProc: section('ExtProc', 'Any'),
  extAuth: section('ExtAuth', 'Any'),
  jwtAuthentication: section('JWTAuthentication', 'Any'),
  basicAuthentication: section('BasicAuthentication', 'Any'),
  apiKeyAuthentication: section('APIKeyAuthentication', 'Any'),
  oidc: section('OIDC', 'Any'),
  cors: section('CORS', 'Any'),
  ipAllowList: section('IPAllowList', 'Any'),
  responseOverride: section('ResponseOverride', 'Any'),
  rateLimit: section('RateLimits', 'PostRouting'),
  plugins: {
    schema: keyedList('name', ref('Plugin'), 'Plugins, which run in this order within a phase.', 1, 16),
    phases: 'PostRouting',
  },
  budgets: {
    schema: {
      ...keyedList(
        'name',
        ref('Budget'),
        'Budgets of money, LLM tokens and requests. Those of all policies that apply to a request hold: no policy replaces the budgets of another one.',
        1,
        16,
      ),
      'x-kubernetes-validations': [
        {
          rule: 'self.all(b, !has(b.parent) || (b.parent != b.name && self.exists(p, p.name == b.parent)))',
          message: 'parent must be the name of another budget of the list',
        },
      ],
    },
    phases: 'PostRouting',
  },
  faultInjection: section('FaultInjection', 'PostRouting'),
  requestBody: section('RequestBody', 'PostRouting'),
  bandwidthLimit: section('BandwidthLimit', 'PostRouting'),
  compression: section('Compression', 'PostRouting'),
  decompression: section('Decompression', 'PostRouting'),
  csrf: section('CSRF', 'PostRouting'),
  headerModifiers: section('HeaderModifiers', 'PostRouting'),
  hostRewrite: section('HostnameRewrite', 'PostRouting'),
  timeouts: section('Timeouts', 'PostRouting'),
  retry: section('Retry', 'PostRouting'),
  cache: section('HttpCache', 'PostRouting'),
  directResponse: section('DirectResponse', 'PostRouting'),
}

const namesOf = (phases: Section['phases']): string[] => Object.keys(sections).filter((name) => sections[name]?.phases === phases)

const fields = {
  phase: choice(
    ['PreRouting', 'PostRouting'],
    'When the policies run. PreRouting runs before a route is chosen, to influence that choice; its target must be a Gateway, a listener or a ListenerSet. The two phases are independent: policies merge within a phase only.',
    { default: 'PostRouting' },
  ),
  ...Object.fromEntries(Object.entries(sections).map(([name, { schema }]) => [name, schema])),
}

export const trafficDefinitions: Definitions = {
  Traffic: object(
    'Policies for requests. Where several policies select a request they merge field by field, not deeply: Gateway < Listener < Route < Route rule; on one target the oldest policy wins.',
    fields,
    [],
    [
      {
        rule: `!has(self.phase) || self.phase != 'PreRouting' || [${namesOf('PostRouting')
          .map((field) => `has(self.${field})`)
          .join(',')}].filter(x,x).size() == 0`,
        message: `phase PreRouting only supports [${namesOf('Any').join(' ')}]`,
        reason: 'FieldValueForbidden',
      },
    ],
  ),
}
