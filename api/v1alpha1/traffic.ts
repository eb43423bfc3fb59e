import { choice, object, ref, type Definitions } from '../schema.ts'

/** Fields that a PreRouting policy may set (traffic.md §2). */
const preRouting = [
  'phase',
  'authorization',
  'transformation',
  'extProc',
  'extAuth',
  'jwtAuthentication',
  'basicAuthentication',
  'apiKeyAuthentication',
  'cors',
]

const fields = {
  phase: choice(
    ['PreRouting', 'PostRouting'],
    'When the policies run. PreRouting runs before a route is chosen, to influence that choice; its target must be a Gateway, a listener or a ListenerSet. The two phases are independent: policies merge within a phase only.',
    { default: 'PostRouting' },
  ),
  transformation: ref('Transformation'),
  extProc: ref('ExtProc'),
  extAuth: ref('ExtAuth'),
  rateLimit: ref('RateLimits'),
  cors: ref('CORS'),
  csrf: ref('CSRF'),
  headerModifiers: ref('HeaderModifiers'),
  hostRewrite: ref('HostnameRewrite'),
  timeouts: ref('Timeouts'),
  retry: ref('Retry'),
  authorization: ref('Authorization'),
  jwtAuthentication: ref('JWTAuthentication'),
  basicAuthentication: ref('BasicAuthentication'),
  apiKeyAuthentication: ref('APIKeyAuthentication'),
  directResponse: ref('DirectResponse'),
}

export const trafficDefinitions: Definitions = {
  Traffic: object(
    'Policies for requests. Where several policies select a request they merge field by field, not deeply: Gateway < Listener < Route < Route rule; on one target the oldest policy wins.',
    fields,
    [],
    [
      {
        rule: `!has(self.phase) || self.phase != 'PreRouting' || [${Object.keys(fields)
          .filter((field) => !preRouting.includes(field))
          .map((field) => `has(self.${field})`)
          .join(',')}].filter(x,x).size() == 0`,
        message: `phase PreRouting only supports [${preRouting.slice(1).join(' ')}]`,
        reason: 'FieldValueForbidden',
      },
    ],
  ),
}
