import type { JsonObject } from './types.ts'

/** Which members of requests and responses hold text, by their names (llm.md §13.1). */

/** Strings that are identifiers, addresses, media and settings instead of text, by the name of their member. */
const NO_TEXT = new Set(
  (
    'type,role,id,object,status,model,signature,reasoning_signature,thought_signature,encrypted_content,encrypted_index,encrypted_stdout,file_id,file_data,file_url,url,uri,media_type,' +
    'mime_type,mimeType,format,detail,effort,call_id,tool_call_id,tool_use_id,item_id,container_id,authorization,authorization_token,server_url,' +
    'image_url,video_url,audio_url,b64_json,syntax,response_id,connector_id,phase,thoughtSignature,fileUri,responseMimeType,response_mime_type'
  ).split(','),
)
/** Members without any text in them. */
export const NO_TEXTS = new Set('image_url,video_url,audio_url,input_audio,cache_control,headers,extra_content,logprobs'.split(','))
/** Members with JSON Schemas: all their strings and names are text. */
export const SCHEMAS = new Set(['parameters', 'input_schema', 'schema'])
const TOOL_CALLS = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use', 'custom_tool_call'])

/** Whether a member holds the input of a tool call, as JSON or text of JSON. */
export function isToolInput(key: string, { type, name }: JsonObject): boolean {
  return (
    key === 'arguments' ||
    (key === 'args' && isCallName(name)) ||
    (key === 'input' && typeof type === 'string' && TOOL_CALLS.has(type)) ||
    (key === 'input' && type === undefined)
  )
}

const isCallName = (name: unknown): boolean => typeof name === 'string'

/** Whether the string at a key is text. `data` is media, except in text documents; `result` may be an image. */
export function hasText(key: string, { type }: JsonObject): boolean {
  if (key === 'result') return type !== 'image_generation_call'
  return key === 'data' ? type === 'text' : !NO_TEXT.has(key)
}
