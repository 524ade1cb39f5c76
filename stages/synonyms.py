"""Words of software talk that stand for each other, in English and Chinese: a question and its answer, weeks apart
and perhaps in two languages, seldom use the same ones.

A small, closed list on purpose: what it says it says everywhere, and a synonym always weighs less than the word.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

from stages import tokens

_GROUPS = """
delete remove erase drop 删除 移除 去掉
add append insert 添加 新增 加入 增加
create generate 创建 新建 生成
change modify edit update alter 修改 更改 编辑 更新 改成
fix repair solve resolve 修复 解决 修好
error failure fail exception fault 错误 报错 异常 失败 出错
crash panic 崩溃
bug defect issue problem 缺陷 问题 毛病
comment remark annotation 评论 批注 注释
image picture photo screenshot 图片 截图 图像
folder directory dir 目录 文件夹
file 文件
repository repo 仓库 代码库
configuration config configure settings setting 配置 设置
environment env 环境
variable var 变量
authentication auth authenticate authorization 认证 鉴权 授权 身份验证
login signin 登录 登陆
password credential 密码 口令 凭据
token 令牌
secret key 密钥
database db 数据库
data 数据
table 数据表 表格
server backend 服务器 后端 服务端
client frontend 客户端 前端
user 用户
test 测试
deploy deployment release publish 部署 发布 上线
build compile compilation 构建 编译
install setup installation 安装
start launch run boot 启动 运行 开启
stop halt kill quit exit 停止 退出 终止
restart 重启
port 端口
conflict clash collision 冲突
address url link 地址 链接 网址
page screen 页面 界面
button 按钮
sidebar panel pane 侧边栏 侧栏 面板
list 列表
search find lookup query 搜索 查找 查询 检索
cache 缓存
log logging logger 日志
performance speed latency 性能 速度 延迟
slow 变慢 太慢 很慢
memory 内存
thread 线程
process 进程
lock 加锁 锁定
queue 队列
network 网络
request 请求
response reply 响应 回复
api interface endpoint 接口
function method 函数 方法
parameter argument param 参数
type 类型
string 字符串
array 数组
object 对象
component 组件
module 模块
package library dependency 依赖 软件包
version 版本
branch 分支
commit 提交
merge 合并
push 推送
pull fetch 拉取
revert undo rollback 回滚 撤销 还原 回退
migrate migration 迁移
sync synchronize synchronization 同步
plan 计划 方案
design architecture 设计 架构
decide decision choose pick 决定 选择 选定
reason cause 原因 理由
document doc documentation 文档
text content passage 文本 内容 正文
save store persist 保存 存储 持久化
load read 加载 读取
write 写入
upload 上传
download 下载
open 打开
close 关闭
show display render 显示 展示 渲染
hide 隐藏
visible 可见
colour color 颜色
scroll 滚动
click 点击
container docker 容器
permission access 权限
timeout 超时
retry 重试
index 索引
certificate cert ssl tls 证书
cursor 光标 游标
highlight 高亮
collaboration collaborate collaborative 协作 协同
realtime live 实时
rename 重命名 改名
upgrade 升级
lint linter check 检查 校验
cors crossorigin 跨域
browser 浏览器
website site 网站
safe secure security 安全
share 共享 分享
monorepo workspace 单仓 工作区
extension plugin addon 扩展 插件
session conversation 会话 对话
message 消息
notification notify 通知
schedule cron 定时 调度
encoding unicode 编码 乱码
parse parser 解析
format formatter 格式 格式化
regex 正则
path 路径
line 行数 换行
duplicate repeat 重复
missing lost 缺失 丢失 不见
backup 备份
restore recover 恢复
example sample 示例 例子
default 默认 缺省
limit bound 限制 上限
size length 大小 长度
time date 时间 日期
rule 规则
role 角色
order sort 排序 顺序
filter 过滤 筛选
convert transform 转换
import 导入
export 导出
copy clone fork 复制 拷贝 克隆
proxy gateway 代理 网关
domain host hostname 域名 主机
script 脚本
command cmd 命令
terminal shell console 终端 控制台
window 窗口
keyboard shortcut 键盘 快捷键
font 字体
theme style css 主题 样式
"""


@cache
def _table() -> tuple[Mapping[str, tuple[str, ...]], re.Pattern[str]]:
    """Synonym tokens by token, and a pattern of the Chinese words, longest first."""
    table: dict[str, dict[str, None]] = defaultdict(dict)
    han = []
    for line in _GROUPS.strip().splitlines():
        words = line.split()
        han += [word for word in words if tokens.is_paired(word)]
        group = [_token(word) for word in words]
        for token in group:
            table[token].update((other, None) for other in group if other != token)
    pattern = re.compile("|".join(sorted(map(re.escape, han), key=len, reverse=True)))
    return {token: tuple(others) for token, others in table.items()}, pattern


def _token(word: str) -> str:
    """The token that tells a word best: of a Chinese word of three its last pair (数据库: 据库, not 数据)."""
    return tokens.tokens(word)[-1]


def of_token(token: str) -> tuple[str, ...]:
    """Tokens that stand for the same as ``token`` (a stem)."""
    return _table()[0].get(token, ())


def in_run(run: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The known words in a run of (simplified) Han: where each one's last pair begins, and its synonyms."""
    table, pattern = _table()
    for match in pattern.finditer(run):
        yield match.end() - 2, table[_token(match[0])]
