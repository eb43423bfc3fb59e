import { compact, numberOf, textOf } from './read.ts'
import type { JsonObject, RequestParams } from './types.ts'

/** Reads the sampling parameters of any format for telemetry and CEL (llm.md §17.3). */
export function readParams(body: JsonObject): RequestParams {
  return compact({
    temperature: numberOf(body['temperature']),
    top_p: numberOf(body['top_p']),
    frequency_penalty: numberOf(body['frequency_penalty']),
    presence_penalty: numberOf(body['presence_penalty']),
    seed: numberOf(body['seed']),
    max_tokens: numberOf(body['max_completion_tokens']) ?? numberOf(body['max_tokens']) ?? numberOf(body['max_output_tokens']),
    encoding_format: textOf(body['encoding_format']),
    dimensions: numberOf(body['dimensions']),
  })
}
