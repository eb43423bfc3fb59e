import { boolean, integer, object, set, string, choice, type Definitions } from '../../schema.ts'

const alone = (what: string) => ({ rule: "!('*' in self) || self.size() == 1", message: `'*' may not be set together with other ${what}` })
const headerOrStar = string('Header name, or `*`.', { minLength: 1, maxLength: 256, pattern: "^[A-Za-z0-9!#$%&'*+\\-.^_`|~]+$" })
const LABEL = '[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?'

export const originPattern = string('`*`, or `scheme://host[:port]` with scheme http or https; the host may start with `*.` or be `*`.', {
  minLength: 1,
  maxLength: 253,
  pattern: `^(\\*|https?://(\\*|(\\*\\.)?${LABEL}(\\.${LABEL})*|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?)$`,
})

export const corsDefinitions: Definitions = {
  CORS: object(
    'Cross-origin resource sharing (Gateway API HTTPCORSFilter). Responds to preflight requests with 200, before authentication; adds CORS headers to responses for allowed origins. A CORS filter in the route replaces this.',
    {
      allowOrigins: {
        ...set(originPattern, 'Origins whose scripts may read responses. `Access-Control-Allow-Origin` echoes the origin of the request.', undefined, 64),
        'x-kubernetes-validations': [alone('origins')],
      },
      allowCredentials: boolean('Sends `Access-Control-Allow-Credentials: true`, so that browsers attach cookies and authorization.'),
      allowMethods: {
        ...set(
          choice(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', '*'], 'Method, or `*`.'),
          'Methods listed in preflight responses.',
          undefined,
          9,
        ),
        'x-kubernetes-validations': [alone('methods')],
      },
      allowHeaders: { ...set(headerOrStar, 'Request headers listed in preflight responses.', undefined, 64), 'x-kubernetes-validations': [alone('headers')] },
      exposeHeaders: { ...set(headerOrStar, 'Response headers that scripts may read.', undefined, 64), 'x-kubernetes-validations': [alone('headers')] },
      maxAge: integer('Seconds for which a browser may cache a preflight response.', 1, 2147483647, { default: 5 }),
    },
  ),
}
