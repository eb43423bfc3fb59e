import { choice, integer, object, ref, string, type Definitions, type Schema } from '../schema.ts'
import { duration } from './shared.ts'

const isModelServer = "(has(self.type) && self.type == 'ModelServer')"
const weight = (description: string): Schema => integer(`${description} In percent of the default.`, 0, 1000, { default: 100 })
const isHash = "(has(self.type) && self.type == 'ConsistentHash')"

export const loadBalancerDefinitions: Definitions = {
  LoadBalancer: object(
    'Selects an endpoint of the backend for each request, of the nearest that are not evicted.',
    {
      type: choice(
        ['LeastRequest', 'RoundRobin', 'Random', 'ConsistentHash', 'ModelServer'],
        'LeastRequest: of two random endpoints the one with better health, latency and load. RoundRobin: one after the other, in each worker. ConsistentHash: the same one for each key. ModelServer: the LLM server that responds first, by cached prefixes, tokens to read and its metrics; for Services and InferencePools, whose endpointPickerRef it replaces. Default of an InferencePool without endpointPickerRef.',
        { default: 'LeastRequest' },
      ),
      consistentHash: ref('ConsistentHash'),
      modelServer: ref('ModelServer'),
      slowStart: object(
        'New endpoints receive few requests at first.',
        { window: duration('Time in which the share of a new endpoint grows from 10 % to that of the others.', 1000) },
        ['window'],
      ),
      panicThreshold: integer(
        'If a smaller share of the endpoints, in percent, is not evicted, evicted ones are used too. Default: only if all are evicted.',
        1,
        100,
      ),
    },
    [],
    [
      {
        rule: `has(self.consistentHash) == ${isHash}`,
        message: 'consistentHash is required for type ConsistentHash, and only permitted for it',
        fieldPath: '.consistentHash',
      },
      {
        rule: `!has(self.slowStart) || (!${isHash} && !${isModelServer})`,
        message: 'slowStart may not be set for types ConsistentHash and ModelServer',
        fieldPath: '.slowStart',
      },
      { rule: `!has(self.modelServer) || ${isModelServer}`, message: 'modelServer may only be set for type ModelServer', fieldPath: '.modelServer' },
    ],
  ),
  ModelServer: object('How servers of LLMs are picked.', {
    engine: choice(
      ['VLLM', 'SGLang', 'TGI', 'TensorRTLLM', 'LlamaCpp'],
      'The program that the servers run, which names their metrics. Default: found out by the names of the metrics.',
    ),
    metricsPath: string('Path of the metrics. Default: /metrics, for TensorRTLLM /prometheus/metrics.', { minLength: 1, maxLength: 256, pattern: '^/[!-~]*$' }),
    weights: object('How much each reason counts.', {
      prefix: weight('Tokens of the prompt that the server has not cached.'),
      queue: weight('Tokens of other prompts that the server has to read first, and requests that wait there.'),
      running: weight('Requests in flight at the server.'),
      kvCache: weight('A KV cache that is nearly full.'),
      adapter: weight('A LoRA adapter that the server has to load.'),
    }),
  }),
  ConsistentHash: object(
    'The key of a request. Requests without one are balanced as LeastRequest does. If several backends of a rule have weights, the key selects the backend too.',
    {
      type: choice(
        ['Header', 'Cookie', 'QueryParam', 'SourceAddress'],
        'Where the key is. SourceAddress: the address of the client, for IPv6 its /64 network.',
      ),
      name: string('Name of the header, cookie or query parameter.', { minLength: 1, maxLength: 256, pattern: "^[A-Za-z0-9!#$%&'*+\\-.^_`|~]+$" }),
      ttl: duration('Lifetime of the cookie that is set if a request has none. Default: the session of the browser.', 1000),
      maxLoad: integer(
        'Requests in flight that an endpoint may have, in percent of the average; further ones go to the next endpoint of their key. Default: no limit.',
        110,
        1000,
      ),
    },
    ['type'],
    [
      { rule: "has(self.name) == (self.type != 'SourceAddress')", message: 'name is required, except for type SourceAddress', fieldPath: '.name' },
      { rule: "!has(self.ttl) || self.type == 'Cookie'", message: 'ttl may only be set for type Cookie', fieldPath: '.ttl' },
    ],
  ),
}
