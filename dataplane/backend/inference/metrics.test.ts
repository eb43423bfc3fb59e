import { expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { dialects, parseMetrics } from './metrics.ts'

const vllm = `# HELP vllm:num_requests_waiting Number of requests waiting.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 1
vllm:num_requests_waiting_by_reason{reason="capacity"} 99
vllm:num_requests_running{engine="0",model_name="m"} 5
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="27000"} 1.0
vllm:lora_requests_info{max_lora="4",running_lora_adapters="old",waiting_lora_adapters=""} 1.7e9
vllm:lora_requests_info{max_lora="4",running_lora_adapters="a, b",waiting_lora_adapters="b,c"} 1.8e9
`

test('the metrics of each server are read from its own names', () => {
  expect(parseMetrics(vllm)).toEqual({ waiting: 4, running: 5, kvUse: 0.75, cacheTokens: 432_000, adapters: ['a', 'b', 'c'] })
  const none = { kvUse: undefined, cacheTokens: undefined, adapters: undefined }
  expect(
    parseMetrics('sglang:num_queue_reqs{tp_rank="0"} 2\nsglang:num_running_reqs 7\nsglang:token_usage 0.5\nsglang:page_size 16\nsglang:num_pages 100'),
  ).toEqual({ waiting: 2, running: 7, kvUse: 0.5, cacheTokens: 1600, adapters: undefined })
  expect(parseMetrics('tgi_queue_size 2\ntgi_batch_current_size 4\n')).toEqual({ ...none, waiting: 2, running: 4 })
  expect(parseMetrics('llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n')).toEqual({ ...none, waiting: 0, running: 1 })
  expect(parseMetrics('trtllm_num_requests_waiting 1\ntrtllm_num_requests_running 2\ntrtllm_kv_cache_utilization 0.1')).toEqual({
    ...none,
    waiting: 1,
    running: 2,
    kvUse: 0.1,
  })
})

test('text without the metrics of a known server, or of the one that is configured, has none', () => {
  expect(parseMetrics('')).toBeUndefined()
  expect(parseMetrics('<html>vllm:num_requests_waiting 1</html>')).toBeUndefined()
  expect(parseMetrics('# HELP tgi_queue_size x\ntgi_queue_size_max 3\ntgi_queue_size NaN\n')).toBeUndefined()
  expect(parseMetrics(vllm, 'SGLang')).toBeUndefined()
})

test('values are numbers or missing, also if a server reports nonsense', () => {
  const names = Object.values(dialects).flatMap(({ waiting, running }) => [...waiting, ...running, 'vllm:cache_config_info', 'vllm:lora_requests_info'])
  const line = fc
    .tuple(fc.constantFrom(...names), fc.constantFrom('', '{}', '{', '{a="}"}', '{block_size="x"}', '{running_lora_adapters=",,"}', '}'), fc.string())
    .map((parts) => parts.join(' '))
  fc.assert(
    fc.property(fc.array(fc.oneof(line, fc.string()), { maxLength: 20 }), (lines) => {
      const metrics = parseMetrics(lines.join('\n'))
      for (const value of [metrics?.waiting, metrics?.running, metrics?.kvUse, metrics?.cacheTokens])
        expect(value === undefined || Number.isFinite(value)).toBe(true)
    }),
    { numRuns: 200 },
  )
})
