import { atLeastOneOf, atMostOneOf, integer, object, ref, type Definitions, type Schema } from '../schema.ts'

/** Share of requests, in the two forms of Gateway API's HTTPRequestMirrorFilter. */
const share: Readonly<Record<string, Schema>> = {
  percent: integer('Percentage of requests. Default: 100.', 0, 100),
  fraction: ref('FaultFraction'),
}

export const faultInjectionDefinitions: Definitions = {
  FaultInjection: object(
    'Delays and aborts requests, to test how clients behave. Requests that authentication, authorization or a limit rejects have no faults. Delays and aborts are chosen independently; a request can have both. `proxy.fault` in the access log and `proxy_faults_injected_total` name them.',
    {
      delay: ref('FaultDelay'),
      abort: ref('FaultAbort'),
      when: ref('CELExpression', 'Condition. If it is not true or fails, the request has no faults.'),
    },
    [],
    [atLeastOneOf('delay', 'abort')],
  ),
  FaultDelay: object(
    'A delay before the request is forwarded or aborted. It counts against `timeouts.request`.',
    {
      duration: {
        ...ref('Duration', 'Length of the delay, from 1ms to 1h.'),
        'x-kubernetes-validations': [
          { rule: "duration(self) >= duration('1ms') && duration(self) <= duration('1h')", message: 'must be from 1ms to 1h', reason: 'FieldValueInvalid' },
        ],
      },
      ...share,
    },
    ['duration'],
    [atMostOneOf('percent', 'fraction')],
  ),
  FaultAbort: object(
    'A response of the gateway instead of that of the upstream, which is not called. It is not retried.',
    {
      status: integer('Status code. Default: 503.', 400, 599),
      grpcStatus: integer('`grpc-status` of responses to gRPC requests. Default: the one that corresponds to `status`.', 1, 16),
      ...share,
    },
    [],
    [atMostOneOf('percent', 'fraction')],
  ),
  FaultFraction: object(
    'A share of requests, such as 1 of 1000.',
    {
      numerator: integer('Numerator.', 0, 1_000_000),
      denominator: integer('Denominator. Default: 100.', 1, 1_000_000),
    },
    ['numerator'],
    [
      {
        rule: 'self.numerator <= (has(self.denominator) ? self.denominator : 100)',
        message: 'numerator must be less than or equal to denominator',
      },
    ],
  ),
}
